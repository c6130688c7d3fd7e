"""A model directory to an object that does its task: what `headwise.load` is."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.interop.ctranslate2.export import PRECISIONS
from headwise.tasks import find_task


def load(path: str | Path, *, engine: str = "auto", precision: str = "int8", **options: Any) -> Any:
    """Opens a model directory or a shipped model: a Translator, a Generator, … as its task says.

    `engine` is torch, ctranslate2, or auto: ctranslate2 for all that it can do, torch for the rest. `precision`, int8
    or float32, is that of ctranslate2. `options` are the task's, such as device.
    """
    bundle = open_bundle(path)
    task = find_task(bundle.task_name)
    if precision not in PRECISIONS:
        raise UsageError(f"unknown precision '{precision}'; there are {', '.join(PRECISIONS)}")
    if unknown := [name for name in options if name not in (known := _options(task.open))]:
        raise UsageError(f"load has no option '{unknown[0]}' for this model; there are {', '.join(known)}")
    return task.open(bundle, engine, precision=precision, **options)


def _options(function: Callable[..., Any]) -> list[str]:
    return [name for name, value in signature(function).parameters.items() if value.kind is value.KEYWORD_ONLY]
