"""Look inside a model at work on one item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwise.bundle.directory import open_bundle
from headwise.tasks import find_task
from headwise.tasks.interface import Seen


def look_inside(
    model: str | Path, text: str, target: str | None = None, *, beam: int | None = None, **options: Any
) -> Seen:
    """What the model in a directory attends to. Without `target`, a translator's own translation is looked at.

    `options` are those of the task's `open`.
    """
    bundle = open_bundle(model)
    task = find_task(bundle.task_name)
    return task.look(task.open(bundle, "torch", **options), text, target, beam=beam)
