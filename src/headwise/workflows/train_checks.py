"""What `headwise train` looks at before it spends any time: the recipe's settings and the data itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwise.bundle.directory import Bundle
from headwise.bundle.weights import declared_shapes
from headwise.config.recipe import left_out
from headwise.config.schema import Recipe
from headwise.errors import DataError, RecipeError
from headwise.tasks import find_task
from headwise.tasks.automatic import FEWEST_TO_SPLIT, DataFacts
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
    _check_validation(recipe, examined.facts, tell)
    return examined.facts


def _check_validation(recipe: Recipe, facts: DataFacts, tell: Callable[[str], None]) -> None:
    """Where there is too little data to split a part off by itself, nobody must believe that something is measured."""
    if recipe.data.validated or not left_out(recipe, "data.split") or facts.lines >= FEWEST_TO_SPLIT:
        return
    few = f"{facts.lines:,} {facts.unit} are too few to hold some out unasked: set data.split or data.validation"
    if recipe.training.best != "loss" or recipe.training.patience:
        raise RecipeError(f"training.best and training.patience need validation data, and {few}")
    tell(f"warning: there is no validation; {few}")


def changed_architecture(start: Bundle, recipe: Recipe) -> dict[str, Any]:
    """What fine-tuning changes of the start model's architecture; refuses all that weights depend on.

    Dropout may change too, and is set later.
    """
    own = recipe.model.own
    if others := sorted(f"model.{name}" for name in own if name not in ("dropout", "pooling")):
        raise RecipeError(f"the architecture comes from model.from: remove {', '.join(others)}")
    if "pooling" not in own:
        return {}
    new = {"pooling": own["pooling"]}
    before, after = (declared_shapes(start.path, start.family, {**start.architecture, **one}) for one in ({}, new))
    if before != after:
        raise RecipeError("the weights of model.from do not fit another pooling: remove model.pooling")
    return new
