"""Finds tasks by name: each has a file of its name with its object in TASK. Torch is imported only when needed."""

from __future__ import annotations

import importlib
import pkgutil

from headwise.errors import ModelError
from headwise.tasks.interface import Task

# This folder also has modules that tasks share or that belong to a single task.
_registered: dict[str, Task] = {}


def find_task(name: str) -> Task:
    """Returns a task by its name; imports it on first use."""
    if name not in _registered and name in {module.name for module in pkgutil.iter_modules(__path__)}:
        task = getattr(importlib.import_module(f"{__name__}.{name}"), "TASK", None)
        if task is not None:
            register_task(task)
    if name not in _registered:
        raise ModelError(f"this version does not know the task '{name}'; upgrade headwise")
    return _registered[name]


def register_task(task: Task) -> None:
    """Registers a task that has no file here: one of another package, or of a test."""
    _registered[task.name] = task
