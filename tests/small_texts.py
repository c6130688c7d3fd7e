"""Small running texts and pairs of texts, which a tiny encoder learns in seconds."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import Any

import tomli_w
from small_tables import WORDS, write_table

MODEL = {
    "family": "bert", "model_dim": 32, "num_heads": 2, "layers": 1, "ff_dim": 32, "max_length": 24, "dropout": 0.0,
    "norm": "pre",
}  # fmt: skip
TRAINING = {
    "steps": 350, "batch_tokens": 512, "schedule": "linear", "learning_rate": 1e-2, "warmup": 5, "validate_every": 175,
    "save_every": 175, "log_every": 25, "threads": 1, "label_smoothing": 0.0,
}  # fmt: skip


def lines_of_order(count: int, seed: int) -> list[str]:
    """Stretches of a fixed order of words: whatever is missing follows from its neighbours.

    They are too short for anybody to mind that they recur.
    """
    words, choose = [word for group in WORDS.values() for word in group], random.Random(seed)
    found = []
    for _ in range(count):
        start, length = choose.randrange(len(words)), choose.randint(5, 7)
        found.append(" ".join(words[(start + number) % len(words)] for number in range(length)))
    return found


def write_fill_recipe(folder: Path, **changes: dict[str, Any]) -> Path:
    (folder / "train.txt").write_text("\n".join(lines_of_order(400, 1)) + "\n")
    (folder / "val.txt").write_text("\n".join(lines_of_order(40, 2)) + "\n")
    recipe: dict[str, Any] = {
        "task": "fill",
        "data": {"text": "train.txt", "validation": {"text": "val.txt"}, "filters": {"duplicates": False}},
        "tokenizer": {"kind": "word", "size": 100},
        "model": MODEL,
        "training": TRAINING,
    }
    return _write(folder, recipe, changes)


def write_span_recipe(folder: Path, **changes: dict[str, Any]) -> Path:
    """The same texts for an encoder and decoder, which fill a gap of one or two words."""
    model = {
        "family": "t5", "model_dim": 32, "num_heads": 2, "head_dim": 16, "encoder_layers": 1, "decoder_layers": 1,
        "ff_dim": 64, "dropout": 0.0,
    }  # fmt: skip
    recipe = write_fill_recipe(folder)
    values = tomllib.loads(recipe.read_text()) | {"model": model, "gaps": {"share": 0.25}}
    values["training"]["steps"] = 500
    return _write(folder, values | {"tokenizer": {"kind": "word", "size": 200}}, changes)


def related_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Two different texts about the same two words."""
    words, choose = [word for group in WORDS.values() for word in group], random.Random(seed)
    pairs = []
    for _ in range(count):
        one, other = choose.sample(words, 2)
        pairs.append((f"{one} {other} {one}", f"{other} {one} {other} {one}"))
    return pairs


def write_embed_recipe(folder: Path, **changes: dict[str, Any]) -> Path:
    names = ("text", "partner")
    write_table(folder / "train.csv", related_pairs(500, 1), names)
    write_table(folder / "val.csv", related_pairs(60, 2), names)
    recipe: dict[str, Any] = {
        "task": "embed",
        "data": {"table": "train.csv", "validation": {"table": "val.csv"}},
        "tokenizer": {"kind": "word", "size": 100},
        "model": MODEL,
        "training": {**TRAINING, "steps": 60, "batch_tokens": 1024},
        "contrast": {"pairs": 16},
    }
    return _write(folder, recipe, changes)


def _write(folder: Path, recipe: dict[str, Any], changes: dict[str, dict[str, Any]]) -> Path:
    merged = {
        name: {**section, **changes.get(name, {})} if isinstance(section, dict) else section
        for name, section in {**{name: {} for name in changes}, **recipe}.items()
    }
    path = folder / "recipe.toml"
    path.write_text(tomli_w.dumps(merged), encoding="utf-8")
    return path
