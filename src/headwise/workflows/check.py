"""`headwise check`: examines the data of a recipe before training."""

from __future__ import annotations

from pathlib import Path

from headwise.config.schema import Recipe
from headwise.tasks import find_task
from headwise.tasks.interface import OnProgress, check_fields
from headwise.text.findings import Report


def check(recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Report:
    """Examines what `[data]` names, as its task does; paths and globs are relative to `base`."""
    task = find_task(recipe.task_name)
    check_fields(task, recipe)
    return task.examine(recipe, base, on_progress).report
