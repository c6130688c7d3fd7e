"""The tasks by name: one file each, named like the task, with its object in TASK. Torch is loaded when it is needed."""

from __future__ import annotations

import importlib
import pkgutil

from headwise.errors import ModelError
from headwise.tasks.interface import Task

# Beside the tasks this folder has what they share and what belongs to one of them.
_registered: dict[str, Task] = {}


def find_task(name: str) -> Task:
    """A task by its name, loaded when first asked for."""
    if name not in _registered and name in {module.name for module in pkgutil.iter_modules(__path__)}:
        task = getattr(importlib.import_module(f"{__name__}.{name}"), "TASK", None)
        if task is not None:
            register_task(task)
    if name not in _registered:
        raise ModelError(f"this version does not know the task '{name}'; upgrade headwise")
    return _registered[name]


def register_task(task: Task) -> None:
    """Makes a task known that has no file here: one of another package, or of a test."""
    _registered[task.name] = task
