"""The training loop.

    for batch in batches:                      # from the cursor on
        update = updater(batch, rate(step))    # loss sum / target count, once
        step += 1
        for hook in hooks: hook.after_update() # log, watch, validate, save: in this order

Everything that is not the loop is a hook. What a resumed run needs is in `state.py` and each hook's own state.

Of several ranks all make the same updates; hooks are rank 0's alone. While it is busy with them the others wait, and do
their part when it puts a sharded model together. Why a run ends is agreed on by all after each update.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from headwise.config.schema import Training
from headwise.data.batch import Batch, LanguageBatch
from headwise.data.batches import Cursor
from headwise.models.registry import Model
from headwise.training.distributed import ALONE, World
from headwise.training.ema import MovingAverage
from headwise.training.gather import ALL, Replica, collect, part_of
from headwise.training.schedules import Schedule
from headwise.training.step import Update, Updater

Record = dict[str, Any]

# Why a run ends, the stronger reason last: at the end of its budget a run is finished, whatever else happens then.
REASONS = (None, "SIGTERM", "SIGINT", "patience", "minutes", "epochs", "steps")
# What rank 0 may ask of the others before it tells them how the run goes on.
_GATHER_ALL, _GATHER_EVALUATED = 100, 101


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
    world: World = ALONE
    replica: Replica | None = None  # on rank 0, of a model that is sharded over the ranks
    asked: str | None = None  # the signal that this rank was sent, until all ranks know of it

    def run(self, batches: Iterable[tuple[Batch | LanguageBatch, Cursor]]) -> str:
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

    def _take(self, batch: Batch | LanguageBatch, after: Cursor, asked: float) -> None:
        update = self.updater(batch, self.schedule(self.step + 1), self.step + 1)
        self.took = time.monotonic() - asked
        self.step += 1
        self.cursor = after
        self.tokens += 0 if update.skipped else update.tokens
        if self.average is not None and not update.skipped:
            self.average.update(self.step)
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
            self._collect(ALL if order == _GATHER_ALL else self._evaluated_part)
        self.stop = REASONS[order]

    # ---- the model as a whole

    def gather(self) -> dict[str, Tensor]:
        """All that a checkpoint keeps, for rank 0's hooks."""
        self._call_ranks(_GATHER_ALL)
        return self._collect(ALL)

    def evaluated_weights(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Of what was gathered, the weights that count: averages where they are kept."""
        return part_of(tensors, *self._evaluated_part)

    @contextmanager
    def evaluated(self) -> Iterator[Model]:
        """Evaluation mode, averaged weights where they are kept; training goes on as if nothing had been asked."""
        if self.replica is not None:
            self._call_ranks(_GATHER_EVALUATED)
            with self.replica.having(self.evaluated_weights(self._collect(self._evaluated_part))) as replica:
                yield replica
            return
        model = self.model.eval()
        try:
            with self.average.applied() if self.average else nullcontext():
                yield model
        finally:
            model.train()

    @property
    def _evaluated_part(self) -> tuple[str]:
        return ("average",) if self.average else ("weights",)

    def _call_ranks(self, order: int) -> None:
        if self.replica is not None:  # else rank 0 has all of it
            self.world.of_leader(order)

    def _collect(self, parts: tuple[str, ...]) -> dict[str, Tensor]:
        return collect(parts, self.model, self.updater.optimizer, self.average, self.world.leads)

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
