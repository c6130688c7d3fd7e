"""The training loop.

    for batch in batches:                      # from the cursor on
        update = updater(batch, rate(step))    # loss sum / target count, once
        step += 1
        for hook in hooks: hook.after_update() # log, watch, validate, save: in this order

Everything that is not the loop is a hook. What a resumed run needs is in `Trainer.state` and each hook's own state.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwise.config.schema import Training
from headwise.data.batch import Batch, LanguageBatch
from headwise.data.batching import Cursor
from headwise.models.registry import Model
from headwise.training.average import MovingAverage
from headwise.training.schedules import Schedule
from headwise.training.step import Update, Updater

Record = dict[str, Any]


class Hook:
    """Something that happens beside training. Records are what hooks tell each other and the user."""

    def begin(self, trainer: Trainer) -> None: ...

    def after_update(self, trainer: Trainer, update: Update, batch: Batch | LanguageBatch) -> None: ...

    def on_record(self, trainer: Trainer, record: Record) -> None: ...

    def end(self, trainer: Trainer) -> None: ...

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None: ...


@dataclass
class Trainer:
    """A run in progress."""

    model: Model
    updater: Updater
    schedule: Schedule
    settings: Training
    hooks: Sequence[Hook] = ()
    average: MovingAverage | None = None
    total_steps: int | None = None
    step: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    tokens: int = 0  # target tokens learned from
    seconds: float = 0.0  # spent before this process took over
    stop: str | None = None  # why the run ends: steps, epochs, minutes, patience, a signal's name
    started: float = field(default_factory=time.monotonic)
    took: float = 0.0  # seconds of the last update, the wait for its batch included, hooks not

    def run(self, batches: Iterable[tuple[Batch | LanguageBatch, Cursor]]) -> str:
        """Trains until the budget is used up or something asks to stop; returns the reason."""
        self.started = time.monotonic()
        self.model.train()
        for hook in self.hooks:
            hook.begin(self)
        self._check_budget()
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

    def _take(self, batch: Batch | LanguageBatch, after: Cursor, asked: float) -> None:
        update = self.updater(batch, self.schedule(self.step + 1), self.step + 1)
        self.took = time.monotonic() - asked
        self.step += 1
        self.cursor = after
        self.tokens += 0 if update.skipped else update.tokens
        if self.average is not None and not update.skipped:
            self.average.update(self.step)
        self._check_budget()
        for hook in self.hooks:
            hook.after_update(self, update, batch)

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
        elif settings.minutes is not None and self.elapsed() >= 60 * settings.minutes:
            self.stop = "minutes"
