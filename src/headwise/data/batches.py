"""Batches of sentence pairs, each of which can be made by itself, and the cursor that says which one is next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from headwise.data.batch import Batch
from headwise.data.plan import Plan, Planner
from headwise.data.store import Store
from headwise.text.ragged import Ragged

Ints = NDArray[np.integer]
Anything_co = TypeVar("Anything_co", covariant=True)
Anything = TypeVar("Anything")
Number = TypeVar("Number", bound=np.integer)

# Other pieces for a batch of sentences: (epoch, rows of the store, their stored pieces) -> pieces.
Resample = Callable[[int, Ints, Ragged], Ragged]


@dataclass(frozen=True, slots=True)
class Cursor:
    """The next batch to be made."""

    epoch: int = 0
    index: int = 0


START = Cursor()


class Batches(Protocol[Anything_co]):
    """Epochs of batches, each of which can be made by itself."""

    def count(self, epoch: int) -> int: ...

    def make(self, cursor: Cursor) -> Anything_co: ...


def walk(
    batches: Batches[Anything], cursor: Cursor = START, epochs: int | None = None
) -> Iterator[tuple[Anything, Cursor]]:
    """Batches from `cursor` on, each with the cursor that goes on after it; without end, or to the end of `epochs`."""
    epoch, index = cursor.epoch, cursor.index
    while epochs is None or epoch < epochs:
        count = batches.count(epoch)
        while index < count:
            after = Cursor(epoch, index + 1) if index + 1 < count else Cursor(epoch + 1, 0)
            yield batches.make(Cursor(epoch, index)), after
            index += 1
        epoch, index = epoch + 1, 0


def share_of(rows: NDArray[Number], rank: int, world: int) -> NDArray[Number]:
    """The rows of one rank: side by side, as the shares of threads are (`Batch.split`), so the sums come out alike."""
    return rows[len(rows) * rank // world : len(rows) * (rank + 1) // world]


class PairBatches:
    """Batches of sentence pairs from a store.

    Of several ranks each gets its share of every batch: what an update sees does not depend on how many there are. The
    share of a batch with fewer sentences than ranks may be empty.
    """

    def __init__(
        self,
        store: Store,
        batch_tokens: int,
        seed: int = 0,
        *,
        longest: int | None = None,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
        resample: tuple[Resample | None, Resample | None] = (None, None),
    ) -> None:
        self.store, self.shuffle, self.rank, self.world = store, shuffle, rank, world
        self.resample = resample
        self.planner = Planner(store.lengths("source"), store.lengths("target"), batch_tokens, seed, longest)
        self._planned: tuple[int, Plan] | None = None
        self._sorted_again: set[int] = set()  # where the neighbourhoods begin that resampling has sorted anew

    @property
    def dropped(self) -> int:
        """Pairs that are longer than a batch or than the model may take; they are in no batch."""
        return self.planner.dropped

    def count(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def make(self, cursor: Cursor) -> Batch:
        rows = share_of(self._rows(cursor), self.rank, self.world)
        source, target = self._pieces(cursor.epoch, rows)
        return Batch.of(source, target, self.store.line_numbers(rows), cursor.index)

    def _rows(self, cursor: Cursor) -> Ints:
        plan = self._plan(cursor.epoch)
        if any(self.resample):
            neighbours = plan.neighbourhood(cursor.index)
            if neighbours.start not in self._sorted_again:
                self._sorted_again.add(neighbours.start)
                rows = plan.order[neighbours]
                rows[:] = rows[self.planner.by_length(*(side.lengths for side in self._pieces(cursor.epoch, rows)))]
        return plan.rows(cursor.index)

    def _pieces(self, epoch: int, rows: Ints) -> list[Ragged]:
        sides = [self.store.rows(side, rows) for side in ("source", "target")]
        return [
            side if again is None else again(epoch, rows, side)
            for again, side in zip(self.resample, sides, strict=True)
        ]

    def _plan(self, epoch: int) -> Plan:
        if not self.shuffle:
            epoch = 0
        if self._planned is None or self._planned[0] != epoch:
            self._planned = None  # the old plan goes before the new one is made
            self._sorted_again.clear()
            self._planned = (epoch, self.planner.plan(epoch) if self.shuffle else self.planner.fixed())
        return self._planned[1]
