"""Groups of text pairs, for an encoder that learns to find the partner of each text within its group.

A row of a batch is a whole group, so that what a text is compared with depends neither on cores nor on ranks.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.data.batch import Batch
from headwise.data.cursor import Cursor, share_of
from headwise.data.joined_texts import joined
from headwise.data.plan import generator
from headwise.data.sequences import NO_LABEL, sequence_inputs
from headwise.data.store import Store
from headwise.errors import DataError
from headwise.text.ragged import Ragged

_POOL = 50  # groups that are sorted by length together
Ints = NDArray[np.int64]


class ContrastBatches:
    """Batches of groups of `pairs` pairs. In training, pairs that do not fill a group wait for the next epoch."""

    def __init__(
        self,
        store: Store,
        batch_tokens: int,
        pairs: int,
        seed: int = 0,
        *,
        longest: int | None = None,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.store, self.seed, self.longest, self.shuffle = store, seed, longest, shuffle
        self.rank, self.world = rank, world
        self.pairs = min(pairs, len(store))
        if self.pairs < 2:
            raise DataError(
                "there is only one pair of texts, but training tells the partner of a text from other texts; add pairs"
            )
        first, second = (store.lengths(side).astype(np.int64) for side in store.sides)
        self.lengths = np.minimum(np.maximum(first, second) + 2, longest or 2**31)
        # Groups of a batch: as many as fit the budget at the usual length.
        self.groups = max(1, batch_tokens // int(2 * self.pairs * self.lengths.mean()))
        self._planned: tuple[int, list[Ints]] | None = None

    def count(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def make(self, cursor: Cursor) -> Batch:
        groups = share_of(self._plan(cursor.epoch)[cursor.index], self.rank, self.world)  # (groups, pairs)
        rows = groups.flatten()
        sides = [joined([self.store.rows(side, rows)], self.longest) for side in self.store.sides]
        ids, lengths = sequence_inputs(Ragged(*map(np.concatenate, zip(*sides, strict=True))))
        # (2 · groups · pairs, S) -> (groups, 2 · pairs, S): the texts of a group, then their partners.
        shape = (2, len(groups), groups.shape[1])
        ids = ids.view(*shape, -1).transpose(0, 1).flatten(1, 2).contiguous()
        lengths = lengths.view(shape).transpose(0, 1).flatten(1).contiguous()
        targets = torch.arange(groups.shape[1]).expand(len(groups), -1).contiguous()
        lines = self.store.line_numbers(groups[:, 0]) if len(groups) else np.zeros(0, dtype=np.int64)
        return Batch.of((ids, lengths), targets, lines, cursor.index, ignore=NO_LABEL)

    def _plan(self, epoch: int) -> list[Ints]:
        if not self.shuffle:
            epoch = 0
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self._shuffled(epoch) if self.shuffle else self._fixed())
        return self._planned[1]

    def _shuffled(self, epoch: int) -> list[Ints]:
        chance = generator(self.seed, epoch, 4)
        order = chance.permutation(len(self.store))
        for start in range(0, len(order), _POOL * self.pairs):
            pool = order[start : start + _POOL * self.pairs]
            pool[:] = pool[np.argsort(self.lengths[pool], kind="stable")]
        whole = len(order) // self.pairs
        skipped = int(chance.integers(len(order) - whole * self.pairs + 1))
        groups = order[skipped : skipped + whole * self.pairs].reshape(whole, self.pairs)
        # Batches are of groups of similar length, in any order.
        batches = [groups[start : start + self.groups] for start in range(0, whole, self.groups)]
        return [batches[number] for number in chance.permutation(len(batches))]

    def _fixed(self) -> list[Ints]:
        """Every pair once, in its order; the last group may be a smaller one."""
        order = np.arange(len(self.store))
        whole = len(order) // self.pairs * self.pairs
        groups = order[:whole].reshape(-1, self.pairs)
        batches = [groups[start : start + self.groups] for start in range(0, len(groups), self.groups)]
        return [*batches, order[None, whole:]] if len(order) - whole > 1 else batches
