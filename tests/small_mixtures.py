"""Two tasks of one model: texts to copy and texts to reverse, which only a prefix tells apart."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import tomli_w

WORDS = ("red", "green", "blue", "dog", "cat", "bird", "runs", "sleeps", "sings", "here")
TASKS = ("copy", "reverse")


def texts(count: int, seed: int) -> list[str]:
    choose = random.Random(seed)
    return [" ".join(choose.choices(WORDS, k=choose.randint(2, 4))) for _ in range(count)]


def answer(task: str, text: str) -> str:
    return text if task == "copy" else " ".join(reversed(text.split()))


def write_task(folder: Path, task: str, part: str, sources: list[str]) -> dict[str, str]:
    """Writes both sides of one part of a task; returns the names of the files."""
    names = {"source": f"{task}.{part}.source", "target": f"{task}.{part}.target"}
    lines = {"source": sources, "target": [answer(task, text) for text in sources]}
    for side, name in names.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines[side]), encoding="utf-8")
    return names


def mixture(folder: Path, count: int = 300, held_out: int = 20) -> list[dict[str, Any]]:
    """The parts of a recipe, whose texts are written into the folder."""
    return [
        {
            "name": task, "prefix": f"{task}: ", **write_task(folder, task, "train", texts(count, seed)),
            "validation": write_task(folder, task, "val", texts(held_out, 90 + seed)),
        }
        for seed, task in enumerate(TASKS)
    ]  # fmt: skip


def write_mixture_recipe(folder: Path, count: int = 300, **changes: dict[str, Any]) -> Path:
    """A recipe of both tasks; `changes` are sections over it, where None removes a key."""
    recipe: dict[str, dict[str, Any]] = {
        "data": {"mixture": mixture(folder, count)},
        "tokenizer": {"kind": "word", "size": 100},
        "model": {
            "family": "t5", "model_dim": 32, "num_heads": 2, "head_dim": 16, "encoder_layers": 1, "decoder_layers": 1,
            "ff_dim": 32, "dropout": 0.1,
        },
        "training": {"steps": 8, "batch_tokens": 200, "warmup": 4, "log_every": 2, "validation_sentences": 10,
                     "validate_every": 4, "save_every": 3, "threads": 1},
    }  # fmt: skip
    merged = {name: {**section, **changes.get(name, {})} for name, section in recipe.items()}
    plain = {name: {k: v for k, v in section.items() if v is not None} for name, section in merged.items()}
    path = folder / "recipe.toml"
    path.write_text(tomli_w.dumps(plain), encoding="utf-8")
    return path
