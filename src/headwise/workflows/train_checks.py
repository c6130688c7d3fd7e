"""What `headwise train` looks at before it spends any time: the recipe's settings and the data itself."""

from __future__ import annotations

from collections.abc import Callable

from headwise.config.recipe import left_out
from headwise.config.schema import Recipe
from headwise.errors import DataError, RecipeError
from headwise.tasks import find_task
from headwise.tasks.automatic import DataFacts
from headwise.tasks.interface import check_fields
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
    decays = settings.schedule in ("cosine", "linear")
    if decays and not left_out(recipe, "training.learning_rate") and settings.minimum_rate >= settings.learning_rate:
        raise RecipeError(
            f"schedule '{settings.schedule}' falls to training.minimum_rate = {settings.minimum_rate:g}, which must be "
            f"below training.learning_rate = {settings.learning_rate:g}"
        )
    if settings.optimizer == "adafactor" and settings.shard:
        raise RecipeError("training.shard cannot split the state of adafactor: set training.optimizer = 'adamw'")
    task.check(recipe)
    validated = recipe.data.validated or recipe.data.split or left_out(recipe, "data.split")
    if not validated and (settings.best != "loss" or settings.patience):
        raise RecipeError("training.best and training.patience need data.validation")
    if any("-" in getattr(part, name) for part in recipe.data.parts for name in part.given):
        raise RecipeError("training reads its data more than once: put standard input into a file first")


def check_data(recipe: Recipe, run: RunDirectory, tell: Callable[[str], None]) -> DataFacts:
    """Tells the report of `headwise check` in short; raises for data that cannot be right."""
    task = find_task(recipe.task_name)
    check_fields(task, recipe)
    examined = task.examine(recipe, run.path)
    for line in examined.report.summary_lines():
        tell(line)
    if examined.report.unusable:
        raise DataError("this data cannot be trained on; run `headwise check` on the same files to see what is wrong")
    return examined.facts
