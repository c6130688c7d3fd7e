"""The plan of a run: what its recipe leaves out, and how many updates fit into the minutes that it is given."""

from __future__ import annotations

from collections.abc import Callable

from headwise.config.recipe import left_out, with_values, without_value
from headwise.config.schema import Recipe
from headwise.tasks import find_task
from headwise.tasks.automatic import Choice, DataFacts, after_timing, choose
from headwise.training.timing import TRAINING_SHARE

Tell = Callable[[str], None]


def complete(recipe: Recipe, facts: DataFacts, tell: Tell = lambda line: None) -> Recipe:
    """The recipe with what it leaves out chosen by its task; each choice is told with its reason."""
    completed, taken = choose(recipe, find_task(recipe.task_name).automatic(recipe, facts))
    _tell_all(taken, tell)
    return completed


def needs_plan(recipe: Recipe) -> bool:
    """Whether only minutes say when the run ends."""
    settings = recipe.training
    return settings.minutes is not None and settings.steps is None and settings.epochs is None


def updates_that_fit(recipe: Recipe, seconds: float) -> int:
    """How many updates of so many seconds fit into the recipe's minutes, validation included."""
    return max(1, round(60 * (recipe.training.minutes or 0.0) * TRAINING_SHARE / seconds))


def planned(recipe: Recipe, steps: int, seconds: float, epoch: int, tell: Tell) -> Recipe:
    """The recipe with its minutes turned into updates, and what follows from their number; `epoch` is in updates."""
    minutes = recipe.training.minutes or 0.0
    changed, taken = with_values(recipe, {"training.steps": steps}), list[Choice]()
    if recipe.training.schedule != "noam" or left_out(recipe, "training.warmup"):
        changed, taken = choose(changed, after_timing(changed, steps, seconds))
    epochs = steps / max(1, epoch)
    tell(f"{steps:,} updates fit in {minutes:g} minutes ({seconds:.2f} s per update; {epochs:.1f} epochs)")
    _tell_all(taken, tell)
    return without_value(changed, "training.minutes")


def _tell_all(choices: list[Choice], tell: Tell) -> None:
    for choice in choices:
        tell(f"chosen: {choice}")
