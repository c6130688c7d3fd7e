"""No model directory that somebody has tampered with can crash a command, hang it, or take its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from counts import HOSTILE
from fixtures_encoders import train_recipe
from small_sounds import write_recordings, write_sound_recipe

from headwise.workflows.translate import open_translator

SHARES = {"translate": 0.4, "generate": 0.2, "classify": 0.15, "fill": 0.08, "embed": 0.09, "transcribe": 0.08}


def campaign(
    models: Mapping[str, Path], folder: Path, counts: Mapping[str, int], *, commands: int, seed: int
) -> dict[str, int]:
    """Returns how many directories and commands there were; fails with those that did not end well."""
    open_translator(models["translate"])  # with the fast engine's export in it
    script = Path(__file__).with_name("hostile_run.py")
    asked: dict[str, Any] = {"models": {task: str(path) for task, path in models.items()}, "folder": str(folder)}
    asked |= {"counts": dict(counts), "commands": commands, "seed": seed}
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(asked)], capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    *bad, total = map(json.loads, done.stdout.splitlines())
    assert bad == []
    told: dict[str, int] = total
    return told


def test_some_tampered_models_get_one_line_from_every_command(
    word_model: Path, language_model: Path, tmp_path: Path
) -> None:
    models = {"translate": word_model, "generate": language_model}
    total = campaign(models, tmp_path, {"translate": 12, "generate": 12}, commands=2, seed=1)
    assert total["commands"] == 2 * 12 * 2


@pytest.fixture
def models(word_model: Path, language_model: Path, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, Path]:
    """A small model of every task."""
    (tmp_path / "tones").mkdir()
    write_recordings(tmp_path / "sounds", 2)
    transcriber = train_recipe(write_sound_recipe(tmp_path / "tones", steps=1), tmp_path / "tones/run")
    encoders = {task: request.getfixturevalue(f"{name}_model") for task, name in
                (("classify", "classifier"), ("fill", "filler"), ("embed", "embedder"))}  # fmt: skip
    return {"translate": word_model, "generate": language_model, **encoders, "transcribe": transcriber}


@pytest.mark.slow
def test_hundreds_of_tampered_models_get_one_line_from_every_command(models: dict[str, Path], tmp_path: Path) -> None:
    counts = {task: round(HOSTILE * share) for task, share in SHARES.items()}
    total = campaign(models, tmp_path, counts, commands=0, seed=1)
    print(f"\n{total}")
    assert total["directories"] >= 0.98 * HOSTILE
