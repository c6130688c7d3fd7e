"""A model directory to an object that does its task: what `headwise.load` is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwise.bundle.directory import open_bundle
from headwise.tasks import find_task


def load(path: str | Path, *, engine: str = "auto", **options: Any) -> Any:
    """Opens a model directory or a shipped model: a Translator, a Generator, … as its task says.

    `engine` is torch, ctranslate2, or auto: ctranslate2 for all that it can do, torch for the rest. `options` are the
    task's: device, precision.
    """
    bundle = open_bundle(path)
    return find_task(bundle.task_name).open(bundle, engine, **options)
