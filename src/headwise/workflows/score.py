"""How likely a model finds given text, line by line, in the model's own precision (torch)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.tasks import find_task
from headwise.tasks.interface import LineScore


def score(model: str, files: Mapping[str, str], **options: Any) -> Iterator[list[LineScore]]:
    """Scores of the lines of files: source and target for a translator, text for a language model.

    `options` are those of the task's `open`.
    """
    bundle = open_bundle(model)
    task = find_task(bundle.task_name)
    if set(files) not in map(set, task.reads):
        wanted = " or ".join(" and ".join(f"--{name}" for name in fields) for fields in task.reads)
        raise UsageError(f"{model} is a model of the task '{task.name}': give it {wanted}")
    return task.score(bundle, files, **options)
