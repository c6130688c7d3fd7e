"""Runs that are killed again and again, inside saves too, end with the bits of a run that was left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from counts import KILLS, RANK_KILLS
from small_recipe import write_small_recipe

CHANGES: dict[str, dict[str, Any]] = {
    "tokenizer": {"dropout": 0.1, "target_dropout": 0.1, "size": 300},
    "model": {"dropout": 0.2},
    "training": {
        "steps": 10, "accumulate": 2, "ema": 0.9, "average": 2, "validate_every": 5, "save_every": 2, "keep": 2,
        "validation_sentences": 2,
    },
}  # fmt: skip


def campaign(folder: Path, kills: int, world: int, seed: int) -> dict[str, Any]:
    recipe = write_small_recipe(folder, held_out=10, **CHANGES)
    script = Path(__file__).with_name("killed_runs.py")
    paths = os.pathsep.join([str(Path(__file__).parents[1] / "same"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script), str(recipe), str(folder), str(kills), str(world), str(seed)],
        stdout=subprocess.PIPE, stderr=(folder / "errors").open("w"), text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
    )  # fmt: skip
    assert done.returncode == 0, (folder / "errors").read_text()[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"\n{told['kills']} kills of {told['runs']} runs on {world} ranks, {told['inside']} inside of a save")
    return told


def test_runs_killed_a_few_times_end_bit_identical(tmp_path: Path) -> None:
    told = campaign(tmp_path, 10, world=1, seed=3)
    assert told["different"] == []
    assert told["inside"] >= 1


@pytest.mark.slow
def test_runs_killed_by_the_thousand_end_bit_identical(tmp_path: Path) -> None:
    told = campaign(tmp_path, KILLS, world=1, seed=1)
    assert told["different"] == []
    assert told["inside"] >= 0.3 * KILLS


@pytest.mark.slow
def test_runs_on_two_ranks_killed_by_the_hundred_end_bit_identical(tmp_path: Path) -> None:
    told = campaign(tmp_path, RANK_KILLS, world=2, seed=2)
    assert told["different"] == []
    assert told["inside"] >= 0.1 * RANK_KILLS
