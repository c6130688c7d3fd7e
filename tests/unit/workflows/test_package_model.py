"""A run becomes a model that ships: smaller, measured, and without a trace of the machine that it was trained on."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path, PurePosixPath

import pytest
from fixtures_models import english_sentences
from fixtures_shipped import ABOUT, finished_run

from headwise.bundle.directory import open_bundle
from headwise.config.recipe import build_recipe
from headwise.errors import HeadwiseError
from headwise.interop.ctranslate2.export import is_current
from headwise.workflows import package_model as workflow
from headwise.workflows.package_model import Shipped, main, ship
from headwise.workflows.train import train
from headwise.workflows.translate import open_translator


def test_the_shipped_form_says_what_the_runs_model_says(word_model: Path, made_to_ship: Shipped) -> None:
    sources = english_sentences(30, seed=7003)
    for engine in ("torch", "ctranslate2"):
        ours = [t.text for t in open_translator(word_model, engine).translate(sources)]
        theirs = [t.text for t in open_translator(made_to_ship.path, engine).translate(sources)]
        assert ours == theirs
    assert (made_to_ship.items, made_to_ship.same["float16"]) == (25, 25)
    assert made_to_ship.same["int8"] >= 23


def test_it_is_half_the_size_and_has_a_current_int8_form_with_fewer_positions(
    word_model: Path, made_to_ship: Shipped
) -> None:
    bundle = open_bundle(made_to_ship.path)
    assert bundle.precision == "float16"
    sizes = [(path / "model.safetensors").stat().st_size for path in (word_model, made_to_ship.path)]
    assert sizes[1] < 0.55 * sizes[0]
    fast = made_to_ship.path / "ctranslate2" / "int8"
    assert is_current(bundle, fast, "int8")
    assert json.loads((fast / "export.json").read_text())["positions"] == workflow.POSITIONS
    assert made_to_ship.size == sum(p.stat().st_size for p in made_to_ship.path.rglob("*") if p.is_file())


def test_the_card_has_scores_with_signatures_and_what_the_model_is_good_for(made_to_ship: Shipped) -> None:
    card = open_bundle(made_to_ship.path).card
    assert card["about"]["good_for"] == "one word after the other"
    assert card["training"] == {"updates": 250, "minutes": 1.5, "tokens_a_second": 1000}
    assert card["stored"] == {"sentences": 25, "same_float16": 25, "same_int8": made_to_ship.same["int8"]}
    assert {(s["test"], s["engine"], s["metric"]) for s in card["scores"]} == {
        (test, engine, metric)
        for test in ("val", "test_words")
        for engine in ("int8", "float16")
        for metric in ("BLEU", "chrF2")
    }
    assert all("version:" in s["signature"] and s["value"] > 90 for s in card["scores"])
    assert card["recipe"]["data"]["source"] == ["words/train.en"]
    assert "/somewhere" not in json.dumps(card)
    assert str(made_to_ship.path.parent.parent) not in json.dumps(card)
    assert card["data"]["fingerprints"]


def test_every_file_of_a_shipped_model_is_put_into_the_wheel(made_to_ship: Shipped) -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["headwise"]
    files = [path for path in made_to_ship.path.rglob("*") if path.is_file()]
    assert len(files) > 6
    for file in files:
        name = PurePosixPath("shipped", *file.relative_to(made_to_ship.path.parent).parts)
        # A pattern's star does not cross a folder, so both must have the same depth.
        assert any(name.match(p) and len(name.parts) == len(PurePosixPath(p).parts) for p in patterns), name


@pytest.fixture
def run(word_model: Path, tmp_path: Path) -> Path:
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "about.toml").write_text(ABOUT, encoding="utf-8")
    return finished_run(tmp_path / "run", word_model)


def test_a_model_that_is_too_large_is_not_put_in_place(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, problem in (
        ("LARGEST_TRANSLATOR", "a shipped model has at most"),
        ("LARGEST_TOGETHER", "the shipped models"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(workflow, limit, 1000)
            with pytest.raises(HeadwiseError, match=problem):
                ship(run, "words-en-de", folder=tmp_path / "shipped")
    assert [path.name for path in (tmp_path / "shipped").iterdir()] == ["about.toml"]


def test_making_it_again_replaces_the_older_one(run: Path, tmp_path: Path) -> None:
    first = ship(run, "words-en-de", folder=tmp_path / "shipped")
    (first.path / "stale.txt").write_text("old")
    second = ship(run, "words-en-de", folder=tmp_path / "shipped")
    assert second.path == first.path
    assert not (second.path / "stale.txt").exists()
    assert sorted(path.name for path in (tmp_path / "shipped").iterdir()) == ["about.toml", "words-en-de"]


def test_what_cannot_be_shipped_is_one_line(
    run: Path, tmp_path: Path, language_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow.shipped, "FOLDER", tmp_path / "shipped")
    other = tmp_path / "lm"
    shutil.copytree(language_model, other / "model")
    (tmp_path / "plain").mkdir()
    for arguments, problem in (
        ([run, "unknown"], "has no entry 'unknown'"),
        ([other, "words-en-de"], "has neither data.validation nor data.test; give --test FILE"),
        ([run, "words-en-de", "--test", "x"], "--test is for models of one kind of file, not of source and target"),
        ([tmp_path / "plain", "words-en-de"], "no model"),
    ):
        assert main(list(map(str, arguments))) == 2
        err = capsys.readouterr().err
        assert problem in err
        assert err.count("\n") == 1


def test_the_command_tells_size_likeness_and_scores(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow.shipped, "FOLDER", tmp_path / "shipped")
    assert main([str(run), "words-en-de"]) == 0
    out = capsys.readouterr().out
    assert "int8 25, float16 25" in out
    assert " MB" in out
    assert "test_words           int8     BLEU" in out


def test_a_recipe_may_start_from_a_shipped_model_by_its_name(shipped_words: Path, tmp_path: Path) -> None:
    for side, line in (("en", "red dog"), ("de", "rot Hund")):
        (tmp_path / f"train.{side}").write_text(f"{line}\n" * 50, encoding="utf-8")
    values = {
        "data": {"source": "train.en", "target": "train.de", "languages": ["en", "de"]},
        "model": {"from": "words-en-de"},
        "training": {"steps": 2, "batch_tokens": 64, "schedule": "constant", "learning_rate": 1e-4, "warmup": 0},
    }
    finished = train(build_recipe(values), tmp_path, tmp_path / "run")
    bundle = open_bundle(finished.model)
    assert (bundle.precision, bundle.architecture) == ("float32", open_bundle("words-en-de").architecture)
    assert open_translator(finished.model, "torch").translate(["red dog"])[0].text == "rot Hund"
