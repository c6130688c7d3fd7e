"""Look inside a model at work on one item."""

from __future__ import annotations

from pathlib import Path

from headwise.bundle.directory import open_bundle
from headwise.tasks import find_task
from headwise.tasks.interface import Seen


def look_inside(model: str | Path, text: str, target: str | None = None, *, beam: int | None = None) -> Seen:
    """What the model in a directory attends to. Without `target`, a translator's own translation is looked at."""
    bundle = open_bundle(model)
    task = find_task(bundle.task_name)
    return task.look(task.open(bundle, "torch"), text, target, beam=beam)
