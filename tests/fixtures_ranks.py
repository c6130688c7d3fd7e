"""A small recipe, and the command `headwise` run by several ranks (tests/same/ranks_run.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headwise.text.phrasebook import write_corpus

RECIPE = """
[data]
source = "train.en"
target = "train.zh"
languages = ["en", "zh"]
[tokenizer]
size = 500
dropout = 0.1
target_dropout = 0.1
[model]
preset = "tiny"
model_dim = 16
num_heads = 2
ff_dim = 16
encoder_layers = 1
decoder_layers = 1
dropout = 0.0
[training]
steps = 20
batch_tokens = 200
clip_norm = 0.5
ema = 0.9
schedule = "inverse-sqrt"
learning_rate = 0.001
warmup = 10
save_every = 10
log_every = 2
threads = 1
"""
VALIDATION = ("data.validation.source=val.en", "data.validation.target=val.zh", "training.validation_sentences=3")
LONGEST = 900  # seconds, on a busy machine: only a hang takes longer


@pytest.fixture
def small_recipe(tmp_path: Path) -> Path:
    write_corpus(tmp_path, train=250, held_out=10)
    path = tmp_path / "small_recipe.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


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
