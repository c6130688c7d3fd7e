"""Under torchrun itself: a worker that is killed is started again by it, and the run goes on by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fixtures_ranks import LONGEST, VALIDATION, succeed, training

from headwise.config.recipe import load_recipe
from headwise.workflows.train import train

SETTINGS = ("training.steps=60", "model.dropout=0.2", "training.validate_every=25", *VALIDATION)


def torchrun(small_recipe: Path, name: str, world: int, *settings: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"]
    command += [
        "--max-restarts=2",
        "-m",
        "headwise",
        "train",
        str(small_recipe),
        "--output",
        str(small_recipe.with_name(name)),
    ]
    command += [word for setting in settings for word in ("--set", setting)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def worker(torchrun: int, rank: int) -> int:
    """The process of a rank, by the environment that torchrun gave it."""
    children = Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()
    wanted = f"RANK={rank}".encode()
    (found,) = (int(c) for c in children if wanted in Path(f"/proc/{c}/environ").read_bytes().split(b"\0"))
    return found


def kill_in_the_middle(small_recipe: Path, world: int, rank: int, *settings: str) -> str:
    """Trains into `killed`; the rank is killed after the first checkpoint. What was said on standard error."""
    process = torchrun(small_recipe, "killed", world, *settings)
    while not (small_recipe.parent / "killed/checkpoints/step-00000010").is_dir():
        assert process.poll() is None
        time.sleep(0)
    os.kill(worker(process.pid, rank), signal.SIGKILL)
    _, said = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, said
    return said


def log(run: Path) -> list[dict[str, Any]]:
    """Without the padding, which a share that is a batch of its own has less of."""
    records = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in record.items() if key != "padding"} for record in records]


def assert_killed_is_as_alone(small_recipe: Path) -> None:
    killed, alone = (small_recipe.with_name(name) for name in ("killed", "alone"))
    for name in ("checkpoints/step-00000060/training.safetensors", "model/model.safetensors"):
        assert (killed / name).read_bytes() == (alone / name).read_bytes(), name
    assert log(killed) == log(alone)


def test_a_killed_worker_is_started_again_and_the_run_ends_as_if_nothing_had_happened(small_recipe: Path) -> None:
    said = kill_in_the_middle(small_recipe, 2, 1, *SETTINGS)
    assert "resuming from update" in said
    loaded, base = load_recipe(small_recipe, [*SETTINGS, "training.threads=2"])
    train(loaded, base, small_recipe.with_name("alone"))  # two threads compute the bits of two ranks
    assert_killed_is_as_alone(small_recipe)


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "shard"), [(0, "false"), (3, "true")])
def test_of_four_workers_any_may_be_killed_sharded_or_not(small_recipe: Path, rank: int, shard: str) -> None:
    settings = (*SETTINGS, f"training.shard={shard}")
    kill_in_the_middle(small_recipe, 4, rank, *settings)
    succeed(training(small_recipe, "alone", 4, *settings))
    assert_killed_is_as_alone(small_recipe)


@pytest.mark.slow
def test_an_error_of_a_rank_is_shown_with_its_name_and_ends_the_job(small_recipe: Path) -> None:
    process = torchrun(small_recipe, "mistaken", 2, "data.source=nowhere.en")
    _, said = process.communicate(timeout=LONGEST)
    assert process.returncode != 0
    assert "headwise: error: rank 0: " in said
    assert "nowhere.en" in said
