"""The training loop.

    for batch in batches:                      # from the cursor on
        update = updater(batch, rate(step))    # loss sum / target count, once
        step += 1
        for hook in hooks: hook.after_update() # log, diagnose, validate, save: in this order

Everything else is a hook. `resume.py` and each hook's own state hold what a resumed run needs.

All ranks make the same updates; only rank 0 has hooks. While rank 0 runs them, the other ranks wait, and take part when
it gathers a sharded model. After each update all ranks agree on whether the run ends, and why.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwise.config.schema import Training
from headwise.data.batch import Batch
from headwise.data.cursor import Cursor
from headwise.models.interface import Network
from headwise.training.distributed import ALONE, World
from headwise.training.gather import FullModel
from headwise.training.schedules import Schedule
from headwise.training.step import Update, Updater

Record = dict[str, Any]

# Why a run ends, the stronger reason last: a run that has used up its budget is finished, even if a signal came too.
REASONS = (None, "SIGTERM", "SIGINT", "patience", "minutes", "epochs", "steps")


class Hook:
    """Something that happens alongside training. Hooks inform each other and the user through records."""

    def begin(self, trainer: Trainer) -> None: ...

    def after_update(self, trainer: Trainer, update: Update, batch: Batch) -> None: ...

    def on_record(self, trainer: Trainer, record: Record) -> None: ...

    def end(self, trainer: Trainer) -> None: ...

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None: ...


@dataclass
class Trainer:
    """Runs the loop and holds its state."""

    updater: Updater
    schedule: Schedule
    settings: Training
    full: FullModel
    hooks: Sequence[Hook] = ()
    total_steps: int | None = None
    step: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    tokens: int = 0  # target tokens learned from
    seconds: float = 0.0  # spent before this process resumed the run
    stop: str | None = None  # why the run ends: steps, epochs, minutes, patience, a signal's name
    started: float = field(default_factory=time.monotonic)
    took: float = 0.0  # seconds of the last update, including the wait for its batch, excluding hooks
    world: World = ALONE
    asked: str | None = None  # the signal that this rank received, until all ranks know of it

    @property
    def model(self) -> Network:
        return self.full.model

    def run(self, batches: Iterable[tuple[Batch, Cursor]]) -> str:
        """Trains until the budget is used up or a stop is requested; returns the reason."""
        self.started = time.monotonic()
        self.model.train()
        for hook in self.hooks:
            hook.begin(self)
        self._check_budget()
        self._agree()
        if self.stop is None:
            began = time.monotonic()
            for batch, after in batches:
                self._update(batch, after, began)
                if self._stopped():
                    break
                began = time.monotonic()
        for hook in self.hooks:
            hook.end(self)
        return self.stop or "epochs"

    def _update(self, batch: Batch, after: Cursor, began: float) -> None:
        update = self.updater(batch, self.schedule(self.step + 1), self.step + 1)
        self.took = time.monotonic() - began
        self.step += 1
        self.cursor = after
        self.tokens += 0 if update.skipped else update.tokens
        if self.full.average is not None and not update.skipped:
            self.full.average.update(self.step)
        self._check_budget()
        self._agree()
        for hook in self.hooks:
            hook.after_update(self, update, batch)
        self._follow_rank_0()

    def ask_to_stop(self, signal: str) -> None:
        """Requests a stop, at any time. A single process stops before the next update; several ranks agree first."""
        if self.world.size > 1:
            self.asked = signal
        elif not self.ended:  # otherwise the run is over anyway
            self.stop = signal

    def _agree(self) -> None:
        """Makes the strongest reason of any rank the reason of all."""
        if self.world.size > 1:
            self.stop = REASONS[self.world.maximum(REASONS.index(self.stop or self.asked))]

    def _follow_rank_0(self) -> None:
        """Carries out rank 0's orders until its hooks are done, then takes over its decision whether to stop."""
        if self.world.size == 1:
            return
        while (order := self.world.broadcast(REASONS.index(self.stop))) >= len(REASONS):
            self.full.follow(order)
        self.stop = REASONS[order]

    # ---- records and budget

    def emit(self, record: Record) -> None:
        for hook in self.hooks:
            hook.on_record(self, record)

    @property
    def ended(self) -> bool:
        """Whether the run came to its end, as opposed to an interruption after which it can be resumed."""
        return self.stop in ("steps", "epochs", "minutes", "patience")

    def elapsed(self) -> float:
        """Returns the seconds spent on this run, including those before it was resumed."""
        return self.seconds + time.monotonic() - self.started

    def progress(self) -> float:
        """Returns the share of the budget that is used up, 0 to 1."""
        shares = [0.0]
        if self.total_steps:
            shares.append(self.step / self.total_steps)
        if self.settings.minutes:
            shares.append(self.elapsed() / 60 / self.settings.minutes)
        return min(1.0, max(shares))

    def seconds_left(self) -> float | None:
        """Returns how long the rest takes at the pace of the run so far; None while nothing is known."""
        done = self.progress()
        return self.elapsed() * (1 - done) / done if done else None

    def _stopped(self) -> bool:
        return self.stop is not None

    def _check_budget(self) -> None:
        """Stops at the end of the budget. It outranks a signal, so the last update is logged and validated as such."""
        settings = self.settings
        if settings.steps is not None and self.step >= settings.steps:
            self.stop = "steps"
        elif settings.epochs is not None and self.cursor.epoch >= settings.epochs:
            self.stop = "epochs"
        elif settings.minutes is not None and self.step and self.elapsed() >= 60 * settings.minutes:
            self.stop = "minutes"  # but after at least one update, so that there is a model to save
