"""A language model the whole way: a recipe, training, its perplexity, its text, and what cannot be done with it."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from verbs import run

RECIPE = """
[data]
text = "train.txt"
[data.validation]
text = "valid.txt"
[tokenizer]
kind = "word"
size = 100
[model]
family = "lm"
model_dim = 32
num_heads = 4
layers = 2
ff_dim = 64
norm = "pre"
dropout = 0.0
max_length = 16
cutoffs = [6, 10]
[training]
steps = 150
batch_tokens = 256
optimizer = "adamw"
schedule = "cosine"
learning_rate = 1e-2
warmup = 10
label_smoothing = 0.0
validate_every = 75
save_every = 75
threads = 1
"""
# A word decides the next one, but for the animal and the end.
NEXT = {"a": "quick", "the": "lazy", "quick": "brown", "lazy": "old", "brown": "fox", "old": "dog", "fox": "jumps"}


def sentence(chance: random.Random) -> str:
    words = [chance.choice(["a", "the"])]
    while words[-1] in NEXT:
        words.append(NEXT[words[-1]])
    return " ".join([*words, "."])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("language"), random.Random(1)
    (folder / "recipe.toml").write_text(RECIPE)
    (folder / "train.txt").write_text("".join(sentence(chance) + "\n" for _ in range(400)))
    (folder / "valid.txt").write_text("".join(sentence(chance) + "\n" for _ in range(40)) + "a wolf .\n")
    done = run("train", folder / "recipe.toml", "--output", folder / "run")
    assert done.code == 0, done.err
    return folder


def test_it_learns_and_its_perplexity_says_how_it_was_counted(trained: Path) -> None:
    done = run("evaluate", "--model", trained / "run" / "model", "--text", trained / "valid.txt", "--json")
    assert done.code == 0, done.err
    tokens = sum(len(line.split()) + 1 for line in (trained / "valid.txt").read_text().splitlines())
    assert f"tokens:{tokens}|unk:1|" in done.out
    assert "eol:counted|context:16|stride:8" in done.out
    found = float(re.search(r'"perplexity": ([0-9.]+)', done.out)[1])  # type: ignore[index]
    assert 1.0 < found < 1.5  # one choice of two a sentence of five to seven tokens: 2 ** (1 / 6) is 1.12


def test_it_writes_the_sentences_it_was_trained_on(trained: Path) -> None:
    options = ["--model", trained / "run" / "model", "--max-tokens", 60, "--seed", 2, "--temperature", 0.2, "--json"]
    texts = [json.loads(line)["text"] for line in run("generate", *options, "--samples", 3, "the lazy").lines]
    for text in texts:
        first, *others = text.split("\n")
        assert first == " old dog ."
        assert set(others[:-1]) <= {"a quick brown fox jumps .", "the lazy old dog ."}
    alone = json.loads(run("generate", *options, "the lazy").out)["text"]
    assert alone == texts[0]


def test_the_fast_engine_does_not_know_an_adaptive_softmax(trained: Path, tmp_path: Path) -> None:
    model = trained / "run" / "model"
    for done in (
        run("export", "--model", model, "--to", "ctranslate2", tmp_path / "fast"),
        run("generate", "--model", model, "--engine", "ctranslate2", "--temperature", 0, "the"),
    ):
        assert done.code == 2
        assert "ctranslate2 has no adaptive softmax" in done.err
        assert done.err.count("\n") == 1
    assert not (tmp_path / "fast").exists()


def test_label_smoothing_and_wrong_cutoffs_are_refused_before_any_work(trained: Path, tmp_path: Path) -> None:
    recipe, output = trained / "recipe.toml", tmp_path / "run"
    smoothed = run("train", recipe, "--output", output, "--set", "training.label_smoothing=0.1")
    assert smoothed.code == 2
    assert "set training.label_smoothing = 0" in smoothed.err
    falling = run("train", recipe, "--output", output, "--set", "model.cutoffs=[9, 4]")
    assert falling.code == 2
    assert "cutoffs must be increasing" in falling.err
