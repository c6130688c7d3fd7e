"""Small tables of texts with labels, which a tiny model learns in seconds: the label is what most words are."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import tomli_w

WORDS = {
    "animals": ["dog", "cat", "horse", "bird", "fish", "cow", "sheep", "wolf", "bear", "fox"],
    "colours": ["red", "blue", "green", "white", "black", "grey", "brown", "pink", "gold", "silver"],
    "numbers": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
}
RECIPE: dict[str, Any] = {
    "task": "classify",
    "data": {"table": "train.csv", "validation": {"table": "val.csv"}},
    "tokenizer": {"kind": "word", "size": 100},
    "model": {
        "family": "bert", "model_dim": 32, "num_heads": 2, "layers": 1, "ff_dim": 32, "max_length": 24, "dropout": 0.0,
        "norm": "pre", "pooling": "mean",
    },
    "training": {
        "steps": 100, "batch_tokens": 256, "schedule": "linear", "learning_rate": 5e-3, "warmup": 5,
        "validate_every": 50, "save_every": 50, "log_every": 10, "threads": 1, "label_smoothing": 0.0,
    },
}  # fmt: skip


def labelled_texts(count: int, seed: int) -> list[tuple[str, str]]:
    choose = random.Random(seed)
    rows = []
    for _ in range(count):
        label, other = choose.sample(list(WORDS), 2)
        words = choose.choices(WORDS[label], k=choose.randint(3, 6)) + choose.choices(
            WORDS[other], k=choose.randint(0, 2)
        )
        choose.shuffle(words)
        rows.append((" ".join(words), label))
    return rows


def write_table(path: Path, rows: list[tuple[str, ...]] | list[tuple[str, str]], names: tuple[str, ...] = ()) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([names or ("text", "label"), *rows])
    return path


def write_table_recipe(folder: Path, rows: int = 300, **changes: Any) -> Path:
    """Writes train.csv, val.csv, test.csv and the recipe; changes are sections: training={"steps": 5}."""
    for seed, (name, count) in enumerate((("train", rows), ("val", 60), ("test", 90))):
        write_table(folder / f"{name}.csv", labelled_texts(count, seed))
    merged = {
        name: {**section, **changes.get(name, {})} if isinstance(section, dict) else changes.get(name, section)
        for name, section in RECIPE.items()
    }
    path = folder / "recipe.toml"
    path.write_text(tomli_w.dumps(merged), encoding="utf-8")
    return path
