"""docs/results.md has the figures of the shipped models' cards, and no other."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from headwise.workflows.models import shipped_models

ROOT = Path(__file__).parents[2]


@pytest.fixture
def make_results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_results", ROOT / "docs" / "make_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_from_the_cards_of_the_shipped_models(make_results: ModuleType) -> None:
    written = make_results.PAGE.read_text(encoding="utf-8")
    made = make_results.fill(written, make_results.figures(shipped_models()) | make_results.measured())
    assert made == written, "run: .venv/bin/python docs/make_results.py"


def test_a_model_has_a_row_with_its_scores_time_speed_size_and_likeness(
    make_results: ModuleType, shipped_words: Path
) -> None:
    models = shipped_models()
    (row,) = make_results.scores_table(models).splitlines()[2:]
    assert row.startswith("| words-en-de | test_words | ")
    (bleu,) = [s for s in models[0].scores if (s.test, s.metric, s.engine) == ("test_words", "BLEU", "float16")]
    assert f" {bleu.value:.2f} |" in row
    assert row.endswith("| 250 | 1.5 | 1,000 |")
    assert f"- BLEU into de: `{bleu.signature}`" in make_results.signatures(models)
    (stored,) = make_results.stored_table(models).splitlines()[2:]
    assert f"| {models[0].size / 1e6:.2f} | 25 | 25 | " in stored


def test_the_page_says_how_it_is_filled_when_nothing_ships(
    make_results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwise.bundle import shipped

    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    assert set(make_results.figures(shipped_models()).values()) == {make_results.NONE}
    with pytest.raises(AssertionError, match="no place for scores"):
        make_results.fill("an empty page", {"scores": "x"})
