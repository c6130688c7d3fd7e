"""What config.json and card.json may say: everything else is one line, before anything is made of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headwise.bundle.declaration import check_card, config_hash, read_declaration
from headwise.bundle.directory import CARD, CONFIG, open_bundle
from headwise.errors import ModelError
from headwise.files import file_hash


def alter(directory: Path, values: dict[str, Any]) -> None:
    """Another config.json with a hash that is right, as an attacker would write it."""
    config = {**json.loads((directory / CONFIG).read_text()), **values}
    config["sha256"] = config_hash(config)
    (directory / CONFIG).write_text(json.dumps(config))


def problem(directory: Path) -> str:
    with pytest.raises(ModelError) as error:
        open_bundle(directory)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600
    return str(error.value)


@pytest.mark.parametrize(
    "values",
    [
        {"num_heads": 0}, {"encoder_layers": 1e9}, {"encoder_layers": 10**9}, {"model_dim": 10**9}, {"model_dim": "x"},
        {"num_heads": None}, {"source_vocab": 10**12}, {"source_vocab": 8}, {"max_length": 10**12}, {"dropout": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_an_impossible_architecture_is_refused_when_it_is_opened(directory: Path, values: dict[str, Any]) -> None:
    architecture = json.loads((directory / CONFIG).read_text())["architecture"]
    alter(directory, {"architecture": {**architecture, **values}})
    assert next(iter(values)) in problem(directory) or "layers" in problem(directory)


@pytest.mark.parametrize("beam", [0, "x", 1_000_000, None, 2.5, [5]])
def test_the_models_own_decoding_defaults_pass_the_checks_of_a_users(directory: Path, beam: object) -> None:
    alter(directory, {"decoding": {"beam": beam}})
    assert "beam" in problem(directory)


@pytest.mark.parametrize(
    "languages", ["en", [1, 2], [["en"], "de"], ["x" * 300, "de"], ["e\nn", "de"], {"en": 1}, None]
)
def test_odd_languages_are_refused(directory: Path, languages: object) -> None:
    alter(directory, {"languages": languages})
    assert "languages" in problem(directory)


def test_a_config_that_was_changed_does_not_have_its_own_hash_and_an_older_one_needs_none(directory: Path) -> None:
    config = json.loads((directory / CONFIG).read_text())
    (directory / CONFIG).write_text(json.dumps({**config, "languages": ["en", "fr"]}))
    assert "does not have its own hash" in problem(directory)
    del config["sha256"]
    (directory / CONFIG).write_text(json.dumps(config))
    assert open_bundle(directory).languages == ("en", "de")


def test_unknown_keys_and_missing_ones_are_named() -> None:
    with pytest.raises(ModelError, match="it has an unknown key 'more'"):
        read_declaration(
            {"format": 1, "family": "lm", "architecture": {}, "languages": [], "decoding": {}, "files": {}, "more": 1},
            "c",
        )
    with pytest.raises(ModelError, match="it has no 'family'"):
        read_declaration({"format": 1, "architecture": {}, "languages": [], "decoding": {}, "files": {}}, "c")


@pytest.mark.parametrize(
    "values",
    [
        {"calibration": 7}, {"calibration": {"mean_log_prob": [], "quality": []}}, {"scores": [1]}, {"scores": "x"},
        {"calibration": {"mean_log_prob": [1, 1], "quality": [0, 1]}}, {"calibration": {"mean_log_prob": [1]}},
    ],
)  # fmt: skip
def test_a_card_that_cannot_be_computed_with_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"card\.json is damaged"):
        check_card(values, "card.json")
    check_card({"calibration": {}, "anything": [1, {"else": None}]}, "card.json")


def test_a_pipe_a_device_and_a_huge_card_are_not_read(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = (directory / CARD).read_bytes()
    (directory / CARD).unlink()
    os.mkfifo(directory / CARD)
    assert "card.json" in problem(directory)
    (directory / CARD).unlink()
    (directory / CARD).symlink_to("/dev/zero")
    assert "card.json" in problem(directory)
    (directory / CARD).unlink()
    with open(directory / CARD, "wb") as stream:
        stream.truncate(100 << 20)
    assert "more than the" in problem(directory)
    (directory / CARD).write_bytes(card + b" ")
    monkeypatch.setattr("headwise.bundle.directory.parse_json", lambda path, content: pytest.fail("it was parsed"))
    assert file_hash(directory / CARD) not in (directory / CONFIG).read_text()
    monkeypatch.setattr("headwise.bundle.directory.read_json", lambda path, most: json.loads(path.read_text()))
    assert "does not have the hash" in problem(directory)
