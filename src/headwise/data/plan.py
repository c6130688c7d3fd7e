"""Assigns sentences to batches as a pure function of (seed, epoch), so any batch of any epoch can be made directly.

An epoch: shuffle all sentences; sort them by length in pools; cut the pools into batches that fit the token budget;
shuffle the batches. Sentences of equal length are in random order and the position of the first cut is random, so every
epoch has different batches.

The budget bounds the padded tokens of the longer side, B · max(S, T), with the end of each sentence. The pieces that
subword regularisation draws are not known when an epoch is planned: its batches come out somewhat longer. Batches of
similar length then redistribute their sentences by the lengths drawn; otherwise the longest sentence of each batch
would leave a quarter of it to padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headwise.errors import DataError

PLACE_BITS = 18
POOL = 2**PLACE_BITS  # sentences sorted together; bounds the memory of planning
NEIGHBOURS = 64  # batches that redistribute their sentences when pieces are drawn
Ints = NDArray[np.integer]


def generator(seed: int, epoch: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch, purpose))))


@dataclass(frozen=True)
class Plan:
    """The batches of an epoch: batch i has the rows order[cuts[j]:cuts[j + 1]], where j = batches[i]."""

    order: NDArray[np.int32]
    cuts: NDArray[np.int64]
    batches: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.batches)

    def rows(self, index: int) -> NDArray[np.int32]:
        which = self.batches[index]
        return self.order[self.cuts[which] : self.cuts[which + 1]]

    def neighbourhood(self, index: int) -> slice:
        """Returns the part of `order` with the batches about as long as batch `index`, including itself."""
        first = int(self.batches[index]) // NEIGHBOURS * NEIGHBOURS
        last = min(first + NEIGHBOURS, len(self.cuts) - 1)
        return slice(int(self.cuts[first]), int(self.cuts[last]))


class Planner:
    """Plans epochs over sentences of given lengths (end of sentence not counted).

    An epoch has every sentence once, or those that `rows` says for it.
    """

    def __init__(
        self, source: Ints, target: Ints, batch_tokens: int, seed: int, longest: int | None = None,
        rows: Callable[[int], NDArray[np.int32]] | None = None,
    ) -> None:  # fmt: skip
        self.source, self.target, self.budget, self.seed, self._rows = source, target, batch_tokens, seed, rows
        limit = batch_tokens if longest is None else min(batch_tokens, longest)
        self._fits = (source < limit) & (target < limit)  # the end of sentence takes one more
        self.dropped = len(source) - int(self._fits.sum())
        if self.dropped == len(source):
            raise DataError(f"no sentence is shorter than {limit} tokens; raise training.batch_tokens")

    def plan(self, epoch: int) -> Plan:
        """Plans the batches of an epoch, shuffled by (seed, epoch)."""
        rng = generator(self.seed, epoch, 0)
        order = self._kept() if self._rows is None else self._rows(epoch)
        if self._rows is not None:
            order = order[self._fits[order]]
        rng.shuffle(order)
        cuts = self._sort_and_cut(order, rng.random())
        return Plan(order, cuts, rng.permutation(len(cuts) - 1))

    def fixed(self) -> Plan:
        """Plans every sentence once, in a fixed order: for validation."""
        order = self._kept()
        cuts = self._sort_and_cut(order)
        return Plan(order, cuts, np.arange(len(cuts) - 1))

    def _kept(self) -> NDArray[np.int32]:
        rows = np.arange(len(self._fits), dtype=np.int32)
        return rows[self._fits] if self.dropped else rows

    def _sort_and_cut(self, order: NDArray[np.int32], first: float = 1.0) -> NDArray[np.int64]:
        """Sorts each pool of `order` in place and returns the bounds of the batches.

        The first batch of a pool is filled only to the share `first`, which shifts all others.
        """
        cuts = [np.zeros(1, dtype=np.int64)]
        for start in range(0, len(order), POOL):
            pool = order[start : start + POOL]
            pool[:] = pool[self.by_length(self.source[pool], self.target[pool])]
            longer = np.maximum(self.source[pool], self.target[pool]).astype(np.int64) + 1
            cuts.append(start + _cut(longer, self.budget, first))
        return np.concatenate(cuts)

    def by_length(self, source: Ints, target: Ints) -> NDArray[np.int64]:
        """Returns an order in which neighbours have similar lengths on both sides."""
        return _by_length(source, target, self.width)

    @cached_property
    def width(self) -> int:
        """The width of target buckets (0: none) that wastes the fewest positions to padding on this corpus."""
        pool = self._kept()[:POOL]
        source, target = (side[pool].astype(np.int64) + 1 for side in (self.source, self.target))

        def positions(width: int) -> int:
            order = _by_length(source, target, width)
            left, right = source[order], target[order]
            begins = np.concatenate(([0], _cut(np.maximum(left, right), self.budget)))
            sizes, begins = np.diff(begins), begins[:-1]
            widest = np.maximum.reduceat(left, begins) + np.maximum.reduceat(right, begins)
            return int((sizes * widest).sum())

        return min((0, 2, 3, 4, 6), key=positions)


def _by_length(source: Ints, target: Ints, width: int) -> NDArray[np.int64]:
    """Returns an order in which neighbours have similar lengths on both sides.

    If the sides are about equally long (width 0): by the longer one, then by the difference, alternately ascending and
    descending, so that the difference does not jump where the longer side grows. If one side is mostly the longer one,
    that would leave the other unsorted: then by buckets of the target, the source alternately ascending and descending.
    """
    # One number holds all keys and, last, the position: sorting numbers is several times faster than sorting by several
    # keys, and equal sentences keep their (shuffled) order.
    left, right = (np.minimum(side, 2**16 - 1).astype(np.int64) for side in (source, target))
    if width == 0:
        slow, fast, last = np.maximum(left, right), left - right, np.zeros_like(left)
    else:
        slow, fast, last = right // width, left, right % width
    fast = 2**16 + np.where(slow % 2, -fast, fast)
    keys = ((((slow << 17) + fast) << 3) + last << PLACE_BITS) + np.arange(len(left))
    return np.asarray(np.sort(keys) & (2**PLACE_BITS - 1))


def _cut(longer: NDArray[np.int64], budget: int, first: float = 1.0) -> NDArray[np.int64]:
    """Returns the ends of the batches: each takes as many sentences as fit, rows times the longest."""
    ends = []
    start, room = 0, int(budget * first)
    while start < len(longer):
        window = np.maximum.accumulate(longer[start : start + max(1, room // int(longer[start]))])
        # Rows times longest never decreases along the window, so bisection finds the bound.
        fitting = int(np.searchsorted(window * np.arange(1, len(window) + 1), room, side="right"))
        start += max(1, fitting)
        ends.append(start)
        room = budget
    return np.array(ends, dtype=np.int64)
