"""What a run's figures mean: a warning before time is spent, and one sentence at the end. Pure functions, no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

FEWEST_UPDATES = 300  # below which a model from scratch has learned next to nothing
LEARNED, LEARNED_SHARE = 0.25, 0.1  # a model must beat where it began by so many nats, or this share of a small loss
TRANSLATES, READABLE = 1.0, 5.0  # BLEU, below which an output is no translation, and none that helps anybody

# How the verdict of a failed run begins.
DID_NOT_LEARN = ("nothing was learned", "it did not learn", "fine-tuning did not help")


def forecast(steps: int | None, warmup: int, from_scratch: bool = True) -> str | None:
    """Why a run of so many updates will not learn, and what to do; None: nothing speaks against it."""
    if steps is None or not from_scratch:
        return None
    if warmup >= steps:
        return (
            f"this will not learn: {steps:,} updates, but a warm-up of {warmup:,}; lower training.warmup to about "
            f"{max(1, steps // 10):,}, or train longer"
        )
    if steps < 2 * warmup:
        return (
            f"this will learn little: {steps:,} updates, and the learning rate rises for {warmup:,} of them; lower "
            f"training.warmup to about {max(1, steps // 10):,}"
        )
    if steps < FEWEST_UPDATES:
        return (
            f"this will hardly learn: {steps:,} updates; give more time (training.minutes), a smaller model.preset "
            "or a smaller training.batch_tokens"
        )
    return None


def verdict(records: Sequence[Mapping[str, Any]], from_scratch: bool = True) -> str:
    """Whether the run learned, still improves or overfits, and what to change, from the records of its log."""
    training = [record["log_loss"] for record in records if record["event"] == "train" and _finite(record)]
    checked = [record for record in records if record["event"] == "validation" and _finite(record)]
    if not training:
        return f"{DID_NOT_LEARN[0]}: no update had a finite loss; lower training.learning_rate"
    enough = training[0] - min(LEARNED, LEARNED_SHARE * training[0])
    if from_scratch and training[-1] > enough and (not checked or checked[-1]["log_loss"] > enough):
        return (
            f"{DID_NOT_LEARN[1]}: the loss went from {training[0]:.2f} to {training[-1]:.2f}; train longer, or try "
            "another training.learning_rate"
        )
    after = training[-1:] + [record["log_loss"] for record in checked[-1:]]
    if not from_scratch and min(after) >= training[0]:
        return (
            f"{DID_NOT_LEARN[2]}: the loss went from {training[0]:.2f} to {training[-1]:.2f}; lower "
            "training.learning_rate, or train longer"
        )
    bleu = [record["bleu"] for record in checked if "bleu" in record]
    steps = max(record.get("step", 0) for record in records)
    if bleu and max(bleu) < TRANSLATES:
        return (
            f"{DID_NOT_LEARN[1]} to translate: BLEU {max(bleu):.1f} on validation, {steps:,} updates; train longer "
            "(training.minutes), or with a smaller model.preset"
        )
    losses = [record["log_loss"] for record in checked]
    reached = losses[-1] if losses else training[-1]  # the last record of training may be of a single batch
    best_step = _stopped_early(records)
    if from_scratch and best_step is None and (begun := _only_begun(training[0], reached, steps, bleu)):
        return begun
    if len(losses) < 3:
        return f"it learned: the loss fell from {training[0]:.2f} to {reached:.2f}"
    best = min(range(len(losses)), key=losses.__getitem__)
    rise, learned = losses[-1] - losses[best], training[0] - losses[best]
    if rise > max(0.03 * losses[best], 0.01 * learned) and best < len(losses) - 2:
        return (
            f"it learned, then overfitted: validation loss was best at update {checked[best]['step']:,} "
            f"({losses[best]:.2f}) and ended at {losses[-1]:.2f}; raise model.dropout, add text, or train less"
        )
    if best_step is not None:  # by its score, whatever the loss does
        return f"it learned, and stopped early: validation has not been better since update {best_step:,}"
    if losses[-2] - losses[-1] > 0.01 * losses[-2]:
        change = f"{losses[-2]:.2f} → {losses[-1]:.2f}"
        return f"it learned and was still improving (validation loss {change}): more time would help"
    levelled = f"it learned, and validation loss levelled off at {losses[best]:.2f}"
    if training[-1] < losses[-1]:
        return levelled
    return f"{levelled}; training loss is no lower ({training[-1]:.2f}): more time or a larger model.preset would help"


def _stopped_early(records: Sequence[Mapping[str, Any]]) -> int | None:
    """The update with the best validation of a run that training.patience ended; None: it ended otherwise."""
    ends = [record for record in records if record["event"] == "end"]
    return ends[-1]["best"].get("step") if ends and ends[-1]["reason"] == "patience" else None


def _only_begun(first: float, last: float, steps: int, bleu: Sequence[float]) -> str | None:
    """The sentence for a run that ended far too early; None: it did not."""
    if max(bleu) >= READABLE if bleu else steps >= FEWEST_UPDATES or last <= first / 2:
        return None
    so_far = f"BLEU {max(bleu):.1f} on validation" if bleu else f"the loss fell from {first:.2f} to {last:.2f}"
    return f"it has only begun to learn: {so_far} after {steps:,} updates; train longer (training.minutes)"


def _finite(record: Mapping[str, Any]) -> bool:
    value = record.get("log_loss")
    return isinstance(value, float) and math.isfinite(value)
