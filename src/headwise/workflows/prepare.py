"""Prepares the data of a recipe, once for all processes of a run: rank 0 does the work, the others open the result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import write_directory
from headwise.config.schema import Recipe
from headwise.tasks import find_task
from headwise.tasks.interface import Prepared, Progress, Task
from headwise.training.distributed import World


def prepare(recipe: Recipe, base: Path, cache: Path, progress: Progress | None = None) -> Prepared:
    """Makes tokenizers (or whatever the task needs) and stores for a recipe whose paths are relative to `base`."""
    return find_task(recipe.task_name).prepare(recipe, base, cache, progress=progress)


def prepare_once(world: World, task: Task, make: Callable[[], Prepared], cache: Path) -> Prepared:
    """Calls `make` on rank 0 only; the other ranks open what it made without reading the data again."""
    if world.size == 1:
        return make()
    prepared: list[Prepared] = []

    def first() -> dict[str, Any]:
        made = make()
        prepared.append(made)
        write_directory(cache / "assets", made.assets.save)
        validation = None if made.validation is None else str(made.validation.directory)
        return {
            "training": str(made.training.directory), "validation": validation, "fingerprints": made.fingerprints
        }  # fmt: skip

    told = world.on_rank_0(first)
    if prepared:
        return prepared[0]
    validation = None if told["validation"] is None else task.open_store(Path(told["validation"]))
    training = task.open_store(Path(told["training"]))
    return Prepared(Assets.load(cache / "assets"), training, validation, told["fingerprints"])
