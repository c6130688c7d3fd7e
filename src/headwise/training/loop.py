"""The training loop.

    for batch in batches:                      # from the cursor on
        update = updater(batch, rate(step))    # loss sum / target count, once
        step += 1
        for hook in hooks: hook.after_update() # log, diagnose, validate, save: in this order

Everything that is not the loop is a hook. What a resumed run needs is in `resume.py` and each hook's own state.

All ranks make the same updates; only rank 0 has hooks. While it runs them, the other ranks wait, and take part when it
gathers a sharded model. After each update all ranks agree on whether the run ends, and why.
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

# Why a run ends, the stronger reason last: a run that has used up its budget is finished, whatever else happens then.
REASONS = (None, "SIGTERM", "SIGINT", "patience", "minutes", "epochs", "steps")


class Hook:
    """Something that happens beside training. Records are what hooks tell each other and the user."""

    def begin(self, trainer: Trainer) -> None: ...

    def after_update(self, trainer: Trainer, update: Update, batch: Batch) -> None: ...

    def on_record(self, trainer: Trainer, record: Record) -> None: ...

    def end(self, trainer: Trainer) -> None: ...

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None: ...


@dataclass
class Trainer:
    """A run in progress."""

    updater: Updater
    schedule: Schedule
    settings: Training
    full: FullModel
    hooks: Sequence[Hook] = ()
    total_steps: int | None = None
    step: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    tokens: int = 0  # target tokens learned from
    seconds: float = 0.0  # spent before this process took over
    stop: str | None = None  # why the run ends: steps, epochs, minutes, patience, a signal's name
    started: float = field(default_factory=time.monotonic)
    took: float = 0.0  # seconds of the last update, the wait for its batch included, hooks not
    world: World = ALONE
    asked: str | None = None  # the signal that this rank was sent, until all ranks know of it

    @property
    def model(self) -> Network:
        return self.full.model

    def run(self, batches: Iterable[tuple[Batch, Cursor]]) -> str:
        """Trains until the budget is used up or something asks to stop; returns the reason."""
        self.started = time.monotonic()
        self.model.train()
        for hook in self.hooks:
            hook.begin(self)
        self._check_budget()
        self._agree()
        if self.stop is None:
            asked = time.monotonic()
            for batch, after in batches:
                self._take(batch, after, asked)
                if self._stopped():
                    break
                asked = time.monotonic()
        for hook in self.hooks:
            hook.end(self)
        return self.stop or "epochs"

    def _take(self, batch: Batch, after: Cursor, asked: float) -> None:
        update = self.updater(batch, self.schedule(self.step + 1), self.step + 1)
        self.took = time.monotonic() - asked
        self.step += 1
        self.cursor = after
        self.tokens += 0 if update.skipped else update.tokens
        if self.full.average is not None and not update.skipped:
            self.full.average.update(self.step)
        self._check_budget()
        self._agree()
        for hook in self.hooks:
            hook.after_update(self, update, batch)
        self._settle()

    def ask_to_stop(self, signal: str) -> None:
        """May be called at any moment. Alone it stops before the next update; several ranks have to agree first."""
        if self.world.size > 1:
            self.asked = signal
        elif not self.ended:  # else it is at its end anyway
            self.stop = signal

    def _agree(self) -> None:
        """The strongest reason that any rank has becomes that of all."""
        if self.world.size > 1:
            self.stop = REASONS[self.world.highest(REASONS.index(self.stop or self.asked))]

    def _settle(self) -> None:
        """Rank 0's hooks are done and may have ended the run; until then the others do what it asks for."""
        if self.world.size == 1:
            return
        while (order := self.world.of_leader(REASONS.index(self.stop))) >= len(REASONS):
            self.full.follow(order)
        self.stop = REASONS[order]

    # ---- records and budget

    def emit(self, record: Record) -> None:
        for hook in self.hooks:
            hook.on_record(self, record)

    @property
    def ended(self) -> bool:
        """The run came to its end, as opposed to an interruption after which it will go on."""
        return self.stop in ("steps", "epochs", "minutes", "patience")

    def elapsed(self) -> float:
        """Seconds of this run, those before a resume included."""
        return self.seconds + time.monotonic() - self.started

    def progress(self) -> float:
        """How much of the budget is used up, 0 to 1."""
        shares = [0.0]
        if self.total_steps:
            shares.append(self.step / self.total_steps)
        if self.settings.minutes:
            shares.append(self.elapsed() / 60 / self.settings.minutes)
        return min(1.0, max(shares))

    def _stopped(self) -> bool:
        return self.stop is not None

    def _check_budget(self) -> None:
        """The end of the budget goes before a signal in the last update: it is logged and validated as the last."""
        settings = self.settings
        if settings.steps is not None and self.step >= settings.steps:
            self.stop = "steps"
        elif settings.epochs is not None and self.cursor.epoch >= settings.epochs:
            self.stop = "epochs"
        elif settings.minutes is not None and self.step and self.elapsed() >= 60 * settings.minutes:
            self.stop = "minutes"  # after one update at the least: there must be something to keep
