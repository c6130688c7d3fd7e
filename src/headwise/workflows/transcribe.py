"""`headwise transcribe`: opens a model that writes down what is said."""

from __future__ import annotations

from pathlib import Path

from headwise.bundle.directory import open_bundle
from headwise.decoding.transcriber import Transcriber
from headwise.errors import ModelError
from headwise.tasks.transcribe import TASK


def open_transcriber(model: str | Path, engine: str = "auto") -> Transcriber:
    """Opens the model; another kind of model is an error that says so."""
    bundle = open_bundle(model)
    if bundle.task_name != TASK.name:
        raise ModelError(f"{bundle.path} is a model of the task '{bundle.task_name}', which does not transcribe")
    return TASK.open(bundle, engine)
