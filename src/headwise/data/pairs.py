"""Batches of sentence pairs, by a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.data.batch import Batch, pad
from headwise.data.cursor import Cursor, share_of
from headwise.data.mixture import PART, Mixing
from headwise.data.plan import Plan, Planner
from headwise.data.store import Store
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import BOS, EOS

Ints = NDArray[np.integer]

# Other pieces for a batch of sentences: (epoch, rows of the store, their stored pieces) -> pieces.
Resample = Callable[[int, Ints, Ragged], Ragged]


def pair_batch(source: Ragged, target: Ragged, lines: Ints | None = None, index: int = 0) -> Batch:
    """Sentence pairs, padded: the network reads source, target so far and source lengths, and is to say the target.

    The decoder's input begins with the begin of sentence and its targets end with the end of sentence: targets are one
    position ahead of it.
    """
    source_lengths = np.asarray(source.lengths, dtype=np.int64) + 1  # with the end of sentence
    target_lengths = np.asarray(target.lengths, dtype=np.int64) + 1
    inputs = pad(source, end=EOS), pad(target, start=BOS), torch.from_numpy(source_lengths)
    widths = source_lengths, target_lengths, None, target_lengths
    return Batch.of(inputs, pad(target, end=EOS), lines, index, widths)


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
        sides: tuple[str, str] = ("source", "target"),
        weights: Sequence[float] = (),
    ) -> None:
        """`weights` are those of the parts, of a store that has several."""
        self.store, self.shuffle, self.rank, self.world = store, shuffle, rank, world
        self.resample, self.sides = resample, sides
        source, target = map(store.lengths, sides)
        mixing = Mixing(store.rows(PART, np.arange(len(store))).tokens, weights, seed) if weights else None
        self.planner = Planner(source, target, batch_tokens, seed, longest, None if mixing is None else mixing.rows)
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
        return pair_batch(source, target, self.store.line_numbers(rows), cursor.index)

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
        sides = [self.store.rows(side, rows) for side in self.sides]
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
