"""The one small recipe of the tests: text from the phrasebook, and a model that trains in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli_w

from headwise.text.phrasebook import write_corpus

SMALL: dict[str, dict[str, Any]] = {
    "data": {
        "source": "train.en", "target": "train.zh", "languages": ["en", "zh"],
        "validation": {"source": "val.en", "target": "val.zh"},
    },
    "tokenizer": {"size": 500},
    "model": {
        "preset": "tiny", "model_dim": 16, "num_heads": 2, "ff_dim": 16, "encoder_layers": 1, "decoder_layers": 1
    },
    "training": {
        "batch_tokens": 200, "schedule": "noam", "warmup": 10, "log_every": 2, "validation_sentences": 4, "threads": 1,
    },
}  # fmt: skip


def small_values(**changes: dict[str, Any]) -> dict[str, Any]:
    """The recipe's sections with changes: small_values(training={"steps": 5}); a value of None removes a key."""
    merged = {name: {**section, **changes.get(name, {})} for name, section in SMALL.items()}
    return {
        name: {key: value for key, value in section.items() if value is not None} for name, section in merged.items()
    }


def write_small_recipe(folder: Path, held_out: int = 20, **changes: dict[str, Any]) -> Path:
    """Writes the corpus and the recipe into a folder; returns the recipe."""
    write_corpus(folder, train=250, held_out=held_out)
    path = folder / "recipe.toml"
    path.write_text(tomli_w.dumps(small_values(**changes)), encoding="utf-8")
    return path
