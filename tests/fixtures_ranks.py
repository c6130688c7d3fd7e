"""A small recipe, and the command `headwise` run by several ranks (tests/same/ranks_run.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_recipe import write_small_recipe

CHANGES: dict[str, dict[str, Any]] = {
    "data": {"validation": None},
    "tokenizer": {"dropout": 0.1, "target_dropout": 0.1},
    "model": {"dropout": 0.0},
    "training": {
        "steps": 20, "clip_norm": 0.5, "ema": 0.9, "schedule": "inverse-sqrt", "learning_rate": 0.001, "save_every": 10,
        "validation_sentences": None,
    },
}  # fmt: skip
VALIDATION = ("data.validation.source=val.en", "data.validation.target=val.zh", "training.validation_sentences=3")
LONGEST = 900  # seconds, on a busy machine: only a hang takes longer


@pytest.fixture
def small_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # paths in `--set` are relative to the current folder
    return write_small_recipe(tmp_path, held_out=10, **CHANGES)


def training(small_recipe: Path, name: str, world: int, *settings: str, **more: Any) -> dict[str, Any]:
    """A job that trains into the directory `name` beside the recipe."""
    arguments = ["train", str(small_recipe), "--output", str(small_recipe.with_name(name))]
    return {"world": world, "arguments": [*arguments, *(w for s in settings for w in ("--set", s))], **more}


def run(*jobs: dict[str, Any]) -> list[dict[str, Any]]:
    script = Path(__file__).with_name("same") / "ranks_run.py"
    done = subprocess.run(
        [sys.executable, str(script)], input=json.dumps(jobs), capture_output=True, text=True, check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=LONGEST,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def succeed(*jobs: dict[str, Any]) -> None:
    for job, result in zip(jobs, run(*jobs), strict=True):
        assert result["codes"] == [0] * job["world"], result["errors"]
