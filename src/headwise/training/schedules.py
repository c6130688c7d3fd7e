"""Learning-rate schedules: functions of the update's number, counted from 1."""

from __future__ import annotations

import math
from collections.abc import Callable

from headwise.config.schema import Training
from headwise.errors import RecipeError

Schedule = Callable[[int], float]


def noam(step: int, model_dim: int, warmup: int, factor: float = 1.0) -> float:
    """Equation 3: d^-0.5 · min(step^-0.5, step · warmup^-1.5)."""
    rising = step * warmup**-1.5 if warmup else math.inf
    return float(factor * model_dim**-0.5 * min(step**-0.5, rising))


def inverse_sqrt(step: int, peak: float, warmup: int) -> float:
    """Rises linearly to the peak, then falls as peak · √(warmup / step)."""
    start = max(warmup, 1)
    return peak * min(step / start, math.sqrt(start / step))


def cosine(step: int, peak: float, warmup: int, total: int, minimum: float = 0.0) -> float:
    """Rises linearly to the peak, then falls along half a cosine to the minimum at the last update."""
    if step < warmup:
        return peak * step / warmup
    return minimum + (peak - minimum) * 0.5 * (1.0 + math.cos(math.pi * _decayed(step, warmup, total)))


def linear(step: int, peak: float, warmup: int, total: int, minimum: float = 0.0) -> float:
    """Rises linearly to the peak, then falls linearly to the minimum at the last update."""
    if step < warmup:
        return peak * step / warmup
    return peak + (minimum - peak) * _decayed(step, warmup, total)


def constant(step: int, peak: float, warmup: int) -> float:
    """Rises linearly to the peak and stays there."""
    return peak * min(1.0, step / warmup) if warmup else peak


def _decayed(step: int, warmup: int, total: int) -> float:
    return min(1.0, (step - warmup) / max(1, total - warmup))


def warmup_updates(settings: Training, total: int | None) -> int:
    """Returns the length of the warm-up in updates; a share is one of all updates."""
    if settings.warmup == int(settings.warmup):
        return int(settings.warmup)
    if total is None:
        raise RecipeError("training.warmup is a share of all updates: set training.steps or training.epochs")
    return max(1, round(settings.warmup * total))


def build_schedule(settings: Training, model_dim: int, total: int | None) -> Schedule:
    """Builds the schedule of a recipe; `total` is the number of updates if it is known in advance."""
    rate, warmup, minimum = settings.learning_rate, warmup_updates(settings, total), settings.minimum_rate
    match settings.schedule:
        case "noam":
            return lambda step: noam(step, model_dim, warmup, rate)
        case "inverse-sqrt":
            return lambda step: inverse_sqrt(step, rate, warmup)
        case "constant":
            return lambda step: constant(step, rate, warmup)
    if total is None:
        raise RecipeError(
            f"schedule '{settings.schedule}' needs the number of updates: set training.steps or training.epochs"
        )
    shape = cosine if settings.schedule == "cosine" else linear
    return lambda step: shape(step, rate, warmup, total, minimum)
