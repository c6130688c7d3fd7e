"""Headwise itself, run by benchmarks/time_to_quality.py: `headwise train` on a recipe whose schedule ends in time.

How many updates fit into the time is measured on a few of them first. The clock stands during validation alone; all
that a user waits for besides it (batches, averages, checkpoints) counts.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from headwise.config.recipe import load_recipe
from headwise.training.hooks import Validate
from headwise.training.loop import Hook, Record, Trainer
from headwise.workflows.train import train

PROBE, SKIPPED = 60, 20  # updates of the probe, of which the first do not count


class Clock(Hook):
    """Prints every validation with the minutes of training that led to it."""

    def __init__(self) -> None:
        self.began = self.paused = self.first = 0.0

    def begin(self, trainer: Trainer) -> None:
        self.began = time.perf_counter()
        for hook in trainer.hooks:
            if isinstance(hook, Validate):
                self._watch(hook)

    def _watch(self, hook: Validate) -> None:
        inner = hook.measure

        def measure(trainer: Trainer) -> Record:
            spent, start = self.spent(), time.perf_counter()
            record = inner(trainer)
            self.paused += time.perf_counter() - start
            point = {"minutes": spent / 60, "updates": trainer.step, "bleu": record["bleu"]}
            print(json.dumps(point), flush=True)
            return record

        hook.measure = measure  # type: ignore[method-assign]

    def after_update(self, trainer: Trainer, *_: Any) -> None:
        if trainer.step == SKIPPED:
            self.first = self.spent()

    def spent(self) -> float:
        return time.perf_counter() - self.began - self.paused


def settings(request: dict[str, Any], steps: int, every: int) -> list[str]:
    changes = {
        **request["settings"], "training.steps": steps, "training.warmup": min(request["warmup"], steps // 4),
        "training.validate_every": every, "training.save_every": every, "training.threads": request["threads"],
        "training.seed": request["seed"],
    }  # fmt: skip
    return [f"{name}={json.dumps(value)}" for name, value in changes.items()]


def run(request: dict[str, Any], output: Path, steps: int, every: int) -> Clock:
    shutil.rmtree(output, ignore_errors=True)
    recipe, base = load_recipe(request["recipe"], settings(request, steps, every), Path(request["corpora"]))
    clock = Clock()
    train(recipe, base, output, hooks=[clock])
    return clock


def probe(request: dict[str, Any], output: Path) -> float:
    """Seconds per update. Nothing is validated, so nothing is printed."""
    shutil.rmtree(output, ignore_errors=True)
    without = ("data.validation.source=[]", "data.validation.target=[]", "training.best='loss'", "training.patience=0")
    changes = [*settings(request, PROBE, PROBE), *without]
    recipe, base = load_recipe(request["recipe"], changes, Path(request["corpora"]))
    clock = Clock()
    train(recipe, base, output, hooks=[clock])
    return (clock.spent() - clock.first) / (PROBE - SKIPPED)


def main() -> None:
    request = json.load(sys.stdin)
    output = Path(request["work"])
    # The probe ends with a checkpoint, which makes its updates look a little slower than those of a long run.
    steps = max(8, int(60 * request["minutes"] / probe(request, output / "probe")))
    points = round(request["minutes"] / request["every"])
    run(request, output / "run", steps, max(1, steps // points))


if __name__ == "__main__":
    main()
