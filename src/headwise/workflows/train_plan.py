"""The plan of a run: what its recipe leaves out, and how many updates fit into the minutes that it is given."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from headwise.config.recipe import left_out, with_values, without_value
from headwise.config.schema import Recipe
from headwise.tasks.automatic import Choice, after_timing, choose
from headwise.training.timing import TRAINING_SHARE

Tell = Callable[[str], None]

REASON_COLUMNS, COLUMNS = 29, 80  # of the table of choices: at least, and at most in all
WORTH_TIMING = 300  # updates: a shorter run of a known number is over soon enough


def total_steps(recipe: Recipe, epoch: int) -> int | None:
    """The number of updates, if it follows from steps or epochs; `epoch` is in updates."""
    settings = recipe.training
    known = [settings.steps, None if settings.epochs is None else settings.epochs * epoch]
    return min((steps for steps in known if steps is not None), default=None)


def updates_that_fit(recipe: Recipe, seconds: float) -> int:
    """How many updates of so many seconds fit into the recipe's minutes, validation included."""
    return max(1, round(60 * (recipe.training.minutes or 0.0) * TRAINING_SHARE / seconds))


def planned(recipe: Recipe, steps: int, seconds: float | None) -> tuple[Recipe, list[Choice]]:
    """The recipe with its minutes turned into updates, and what was chosen because of their number."""
    changed, taken = with_values(recipe, {"training.steps": steps}), list[Choice]()
    if recipe.training.schedule != "noam" or left_out(recipe, "training.warmup"):
        changed, taken = choose(changed, after_timing(changed, steps, seconds))
    return without_value(changed, "training.minutes"), taken


def foretold(steps: int, seconds: float, epoch: int, memory: int, minutes: float | None = None) -> str:
    """How long a run takes, in one line; `epoch` is in updates, `memory` in bytes, `minutes` what the run was given."""
    fit = f"{steps:,} updates fit in {minutes:g} minutes" if minutes else f"{steps:,} updates, {_time(steps * seconds)}"
    epochs = f"{steps / max(1, epoch):.1f} epochs of {_time(epoch * seconds)}"
    return f"forecast: {fit} ({seconds:.2f} s each); {epochs}; memory {memory / 1e9:.1f} GB"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def table(choices: Sequence[Choice]) -> list[str]:
    """One row per reason with all that was chosen for it, so that the table stays short."""
    rows: dict[str, list[str]] = {}
    for choice in choices:
        rows.setdefault(choice.reason, []).append(f"{choice.key}={choice.value}")
    left = 2 + max([REASON_COLUMNS, *map(len, rows)])
    lines = []
    for reason, settings in rows.items():
        wrapped = textwrap.wrap("  ".join(settings), COLUMNS - left - 2, break_long_words=False, break_on_hyphens=False)
        heads = [reason, *("" for _ in wrapped[1:])]
        lines += [f"  {head:<{left}}{line}" for head, line in zip(heads, wrapped, strict=True)]
    return lines


def tell_choices(choices: Sequence[Choice], tell: Tell) -> None:
    if choices:
        tell("chosen, since the recipe leaves it open:")
    for line in table(choices):
        tell(line)
