"""Warns once about each symptom of a run that goes wrong, with a remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from headwise.training.loop import Hook, Record, Trainer

_RECENT = 8  # log records to compare


def not_falling(losses: Sequence[float]) -> str | None:
    """Warns if the loss of the last records is no lower than that of the first."""
    if len(losses) < 2 * _RECENT:
        return None
    first, last = _mean(losses[:_RECENT]), _mean(losses[-_RECENT:])
    if last < 0.99 * first:
        return None
    return (
        f"the loss is not falling ({first:.3f} at first, {last:.3f} now): try another learning rate or a longer warm-up"
    )


def diverging(losses: Sequence[float]) -> str | None:
    """Warns if the loss has risen far above its minimum."""
    if len(losses) < 4:
        return None
    best, last = min(losses[:-2]), min(losses[-2:])
    if last < 1.5 * best or last < best + 1.0:
        return None
    return (
        f"the loss is diverging ({best:.3f} at best, {last:.3f} now): lower the learning rate or set training.clip_norm"
    )


def overfitting(validations: Sequence[tuple[float, float]]) -> str | None:
    """Warns if the validation loss rises three times in a row while the training loss falls.

    `validations` are pairs of (training loss, validation loss).
    """
    if len(validations) < 4:
        return None
    last = validations[-4:]
    rises = all(b[1] > a[1] for a, b in pairwise(last))
    if not rises or last[-1][0] >= last[0][0]:
        return None
    return (
        f"overfitting: validation loss rose from {last[0][1]:.3f} to {last[-1][1]:.3f} while training loss fell; "
        "raise model.dropout, choose a smaller model, or stop earlier (training.patience)"
    )


def far_above(validations: Sequence[tuple[float, float]]) -> str | None:
    """Warns if the validation loss is far above the training loss: the texts differ in kind or are misaligned."""
    if len(validations) < 2:
        return None
    training, validation = validations[-1]
    if validation < training + 2.0:
        return None
    return (
        f"validation loss ({validation:.2f}) is far above training loss ({training:.2f}): check that the validation "
        "text is of the same kind and aligned (headwise check)"
    )


def empty_outputs(share: float) -> str | None:
    """Warns if many translations are empty."""
    if share < 0.2:
        return None
    return f"{share:.0%} of the validation outputs are empty: train longer, or look for empty targets (headwise check)"


class Diagnostics(Hook):
    """Keeps the history that the rules above need, and emits their warnings."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.validations: list[tuple[float, float]] = []
        self.given: list[str] = []

    def on_record(self, trainer: Trainer, record: Record) -> None:
        if record["event"] == "train":
            loss = record["log_loss"]
            # The first records show whether the loss fell at all, the last ones where it is now.
            self.losses.append(loss if math.isfinite(loss) else 1e9)
            if len(self.losses) > 4 * _RECENT:
                del self.losses[_RECENT : 2 * _RECENT]
            self._warn(trainer, "not falling", not_falling(self.losses))
            self._warn(trainer, "diverging", diverging(self.losses))
        elif record["event"] == "validation":
            recent = _mean(self.losses[-_RECENT:]) if self.losses else record["log_loss"]
            self.validations = [*self.validations, (recent, record["log_loss"])][-8:]
            self._warn(trainer, "overfitting", overfitting(self.validations))
            self._warn(trainer, "far above", far_above(self.validations))
            self._warn(trainer, "empty", empty_outputs(record.get("empty", 0.0)))

    def _warn(self, trainer: Trainer, rule: str, message: str | None) -> None:
        if message is not None and rule not in self.given:
            self.given.append(rule)
            trainer.emit({"event": "warning", "step": trainer.step, "rule": rule, "message": message})

    def state(self) -> dict[str, Any]:
        return {"losses": self.losses, "validations": self.validations, "given": self.given}

    def restore(self, state: dict[str, Any]) -> None:
        self.losses, self.given = list(state["losses"]), list(state["given"])
        self.validations = [(float(a), float(b)) for a, b in state["validations"]]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
