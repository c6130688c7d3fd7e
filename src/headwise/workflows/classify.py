"""Labels for lines of text or for files, in the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.tasks.classifier import Classification, Classifier
from headwise.tasks.classify import TASK


def open_classifier(model: str | Path, engine: str = "auto", **options: Any) -> Classifier:
    bundle = open_bundle(model)
    if bundle.task_name != TASK.name:
        raise UsageError(f"{model} is a model of the task '{bundle.task_name}'; use headwise {bundle.task_name}")
    return TASK.open(bundle, engine, **options)


def classify_lines(
    classifier: Classifier, chunks: Iterable[Sequence[str]]
) -> Iterator[tuple[Sequence[str], list[Classification | None]]]:
    """Yields each chunk with its answers; an empty line has none."""
    for chunk in chunks:
        filled = [line for line in chunk if line.strip()]
        answers = iter(classifier.classify(classifier.inputs.items(filled, classifier.assets)) if filled else ())
        if chunk:
            yield chunk, [next(answers) if line.strip() else None for line in chunk]
