"""What `headwise train` looks at before it spends any time: the recipe's settings and the text itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headwise.config.recipe import left_out
from headwise.config.schema import Recipe
from headwise.data.chunks import Files
from headwise.errors import DataError, RecipeError
from headwise.tasks import find_task
from headwise.text.corpus import read_line_batches, read_pair_batches
from headwise.text.findings import Report
from headwise.workflows.check import check
from headwise.workflows.run_directory import RunDirectory


def check_settings(recipe: Recipe) -> None:
    """Raises a RecipeError for settings that contradict each other. What is left out may still be chosen."""
    settings = recipe.training
    task = find_task(recipe.task_name)
    if settings.best not in ("loss", *task.scores):
        there = ", ".join(("loss", *task.scores))
        raise RecipeError(f"training.best = '{settings.best}' is not a score of the task '{task.name}' ({there})")
    smoothed = settings.label_smoothing and not left_out(recipe, "training.label_smoothing")
    if smoothed and (name := recipe.model.settings.no_label_smoothing):
        raise RecipeError(f"model.{name} has no label smoothing: set training.label_smoothing = 0")
    task.check(recipe)
    held_out = recipe.data.validation
    validated = held_out.source or held_out.text or recipe.data.split or left_out(recipe, "data.split")
    if not validated and (settings.best != "loss" or settings.patience):
        raise RecipeError("training.best and training.patience need data.validation")
    if "-" in (*recipe.data.source, *recipe.data.target, *recipe.data.text):
        raise RecipeError("training reads its text more than once: put standard input into a file first")


def check_text(recipe: Recipe, run: RunDirectory, tell: Callable[[str], None]) -> Report:
    """Tells the report of `headwise check` in short and returns it; raises for text that cannot be right."""
    report = check(recipe.data, run.path)
    for line in report.summary_lines():
        tell(line)
    if report.unusable:
        raise DataError("this data cannot be trained on; run `headwise check` on the same files to see what is wrong")
    return report


def source_lines(files: Files) -> Iterator[str]:
    """Every source line (or line of text) of a corpus, for its fingerprint."""
    if files.text:
        yield from (text for batch in read_line_batches(files.text, format=files.format) for text in batch.texts)
    else:
        batches = read_pair_batches(files.source, files.target, format=files.format, fields=files.fields)
        yield from (text for batch in batches for text in batch.sources)
