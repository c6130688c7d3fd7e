"""How good is a model or an output: the scores of its task, with what makes them comparable."""

from __future__ import annotations

from typing import Any

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.tasks import find_task
from headwise.tasks.interface import Evaluated, OnProgress


def evaluate(model: str, on_progress: OnProgress | None = None, **asked: Any) -> Evaluated:
    """Evaluates a model on files, as its task does; without a model, the output in `hypothesis` is scored.

    `asked` are the options of `headwise evaluate`: source, reference, text, against, …
    """
    given = {name: value for name, value in asked.items() if value not in (None, "", [], ())}
    if not model:
        if missing := [name for name in ("recipe", "prefix", "languages") if name in given]:
            raise UsageError(f"--{missing[0]} is for a model: give --model DIR")
        from headwise.tasks.translation_scores import EvaluateOptions, evaluate_translation

        return evaluate_translation(EvaluateOptions(**given), on_progress)
    bundle = open_bundle(model)
    return find_task(bundle.task_name).evaluate(bundle, on_progress, **given)
