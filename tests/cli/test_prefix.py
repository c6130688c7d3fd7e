"""A model of several tasks, as a user tells it which one is meant."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from verbs import run

from headwise.bundle.assets import Assets
from headwise.config.recipe import build_recipe
from headwise.models.t5 import T5
from headwise.tasks.prefixes import prefixes_of
from headwise.text.tokenizer import Tokenizer, TokenizerPair
from headwise.workflows.save import save

TEXT = "a b c d e f"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights: how likely they find what they write depends on the prefix."""
    parts = [
        {"prefix": "to german: ", "languages": ["en", "de"]},
        {"prefix": "to english: ", "languages": ["de", "en"]},
    ]
    tokenizer = Tokenizer.train([f"{TEXT} to german: english:"], kind="word", size=40)
    torch.manual_seed(3)
    sizes = {"model_dim": 32, "num_heads": 2, "head_dim": 16, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 32}
    network = T5(vocab=tokenizer.size, **sizes)
    kept = prefixes_of(build_recipe({"data": {"mixture": parts}}).data)
    assets = Assets(TokenizerPair.one(tokenizer), preprocessing=kept)
    return save(network, assets, tmp_path_factory.mktemp("told") / "model", task="translate")


def translated(model: Path, *options: object) -> str:
    return run("translate", "--model", model, "--engine", "torch", "--scores", *options).out


def test_translate_is_told_by_languages_or_by_the_prefix(model: Path) -> None:
    german, english = translated(model, "--to", "de", TEXT), translated(model, "--from", "de", TEXT)
    assert german != english
    assert translated(model, "--prefix", "to german:", TEXT) == german
    assert translated(model, "--prefix", "", "--whole-lines", f"to english: {TEXT}") == english


def test_what_is_not_said_or_not_known_is_refused_with_the_choices(model: Path) -> None:
    done = run("translate", "--model", model, TEXT)
    assert done.code == 2
    assert "was trained for several things: choose --from en --to de, --from de --to en" in done.err
    assert "was not trained for these languages" in run("translate", "--model", model, "--to", "fr", TEXT).err


def test_score_evaluate_look_and_info_know_prefixes(model: Path, tmp_path: Path) -> None:
    (tmp_path / "source").write_text(f"{TEXT}\n")
    (tmp_path / "target").write_text(f"{TEXT}\n")
    files = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    scores = [run("score", "--model", model, *files, *options).out for options in (("--to", "de"), ("--to", "en"))]
    assert scores[0] != scores[1]
    pair = ("--source", tmp_path / "source", "--reference", tmp_path / "target")
    done = run("evaluate", "--model", model, *pair, "--to", "en", "--engine", "torch")
    assert "prefix:to english:" in done.out
    page = tmp_path / "look.html"
    run("look", "--model", model, "--prefix", "to german: ", TEXT, "--output", page)
    assert "german:" in page.read_text()
    assert "prefixes      'to german: ', 'to english: '" in run("info", model).out
