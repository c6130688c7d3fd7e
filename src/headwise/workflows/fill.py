"""Fills the gaps of texts, with a model of the task `fill`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.tasks.fill import TASK
from headwise.tasks.gaps import gaps_of
from headwise.tasks.gaps.interface import FillsGaps


def open_filler(model: str | Path, engine: str = "auto", **options: Any) -> FillsGaps:
    bundle = open_bundle(model)
    if bundle.task_name != TASK.name and not gaps_of(bundle.settings).any_task:
        raise UsageError(f"{model} is a model of the task '{bundle.task_name}'; use headwise {bundle.task_name}")
    return TASK.open(bundle, engine, **options)
