"""Tells the user when the machine has become much slower than at the start of the run."""

from __future__ import annotations

from collections import deque
from statistics import median

from headwise.data.batch import Batch
from headwise.training.loop import Hook, Trainer
from headwise.training.step import Update

UPDATES = 20  # that a pace is the median of
SLOWER = 1.5  # times the pace at the start: less is usual on shared machines


class Pace(Hook):
    """Compares the newest updates with the first ones of this process.

    Its record is of the kind that is shown and not logged: the log of a run must not depend on the machine.
    """

    def __init__(self) -> None:
        self.first: list[float] = []
        self.newest: deque[float] = deque(maxlen=UPDATES)
        self.told_at = 1.0  # times the pace at the start

    def after_update(self, trainer: Trainer, update: Update, batch: Batch) -> None:
        if len(self.first) < UPDATES:
            self.first.append(trainer.took)
            return
        self.newest.append(trainer.took)
        if len(self.newest) < UPDATES or trainer.step % UPDATES:
            return
        before, now = median(self.first), median(self.newest)
        if now > SLOWER * self.told_at * before:
            self.told_at = now / before
            left = (trainer.total_steps - trainer.step) * now / 60 if trainer.total_steps else None
            rest = "" if left is None else f"; at this pace it takes another {left:,.0f} minutes"
            message = f"the machine has become slower: {now:.2f} s per update, {before:.2f} s at first{rest}"
            trainer.emit({"event": "slow", "step": trainer.step, "message": message})
