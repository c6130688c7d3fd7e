"""A run as `headwise train` leaves it, and the shipped form that is made of it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures_models import english_sentences, german

from headwise.bundle import shipped
from headwise.bundle.directory import open_bundle, write_config
from headwise.workflows.package_model import Shipped, ship

ABOUT = """
[words-en-de]
trained_on = "sentences of colours, numbers and animals"
good_for = "one word after the other"
limits = "It knows 18 words."
licence = "public domain"
source = "https://example.org"
"""


def finished_run(directory: Path, model: Path) -> Path:
    """A run directory around a model, with validation and test texts, a log, and its end."""
    shutil.copytree(model, directory / "model")
    far = "/somewhere/else/words/train"
    data: dict[str, object] = {"source": [f"{far}.en"], "target": [f"{far}.de"]}
    for part, name, seed in (("validation", "val", 7001), ("test", "test_words", 7002)):
        sentences = english_sentences(25, seed=seed)
        files = {"source": directory / f"{name}.en", "target": directory / f"{name}.de"}
        files["source"].write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
        files["target"].write_text("".join(f"{german(line)}\n" for line in sentences), encoding="utf-8")
        data[part] = {side: [str(file)] for side, file in files.items()}
    bundle = open_bundle(directory / "model")
    write_config(
        directory / "model",
        replace(bundle, card={**bundle.card, "parameters": 92160, "recipe": {"data": data}}),
    )
    (directory / "finished.json").write_text(
        json.dumps({"reason": "steps", "step": 250, "seconds": 90.0, "best": {"bleu": 99.0}}), encoding="utf-8"
    )
    (directory / "log.jsonl").write_text('{"event": "train", "step": 250, "log_loss": 0.1}\n', encoding="utf-8")
    (directory / "times.jsonl").write_text(
        '{"step": 125, "seconds": 40.0, "tokens_per_second": 900.0}\n'
        '{"step": 250, "seconds": 90.0, "tokens_per_second": 1100.0}\n',
        encoding="utf-8",
    )
    return directory


@pytest.fixture(scope="session")
def made_to_ship(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """The word model as it would ship, in a folder of its own. Do not write into it."""
    run = finished_run(tmp_path_factory.mktemp("runs") / "words", word_model)
    folder = tmp_path_factory.mktemp("shipped")
    (folder / "about.toml").write_text(ABOUT, encoding="utf-8")
    return ship(run, "words-en-de", folder=folder)


@pytest.fixture
def shipped_words(made_to_ship: Shipped, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For one test the only shipped model is words-en-de; gives its directory."""
    monkeypatch.setattr(shipped, "FOLDER", made_to_ship.path.parent)
    return made_to_ship.path


def ship_another(path: Path, name: str, source: str, target: str) -> None:
    """A copy of a shipped model that claims another pair of languages."""
    copy = path.parent / name
    shutil.copytree(path, copy)
    write_config(copy, replace(open_bundle(copy), languages=(source, target)))
