"""Batches of texts for an encoder, with one label per text or one target per token."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.data.batch import Batch, pad
from headwise.data.cursor import Cursor, share_of
from headwise.data.joined_texts import joined, specials
from headwise.data.plan import Plan, Planner
from headwise.data.store import Store
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import BOS, EOS

Ints = NDArray[np.integer]
NO_LABEL = -1  # the `ignore` of batches with labels: class 0 is a class


def sequence_inputs(sequences: Ragged) -> tuple[torch.Tensor, torch.Tensor]:
    """What an encoder reads: ids (B, S) with begin and end, and their lengths (B,)."""
    lengths = np.asarray(sequences.lengths, dtype=np.int64) + 2
    return pad(sequences, start=BOS, end=EOS), torch.from_numpy(lengths)


def sequence_batch(
    sequences: Ragged, targets: torch.Tensor, lines: Ints | None = None, index: int = 0, *, ignore: int = NO_LABEL
) -> Batch:
    """A batch of encoder inputs with one target per row, (B,), or per token, (B, S)."""
    ids, lengths = sequence_inputs(sequences)
    widths = lengths.numpy()
    return Batch.of(
        (ids, lengths), targets, lines, index, (widths, None, widths if targets.dim() > 1 else None), ignore
    )


class LabelledBatches:
    """Batches of a store with the sides text (and second) and label, by a budget of tokens from length buckets.

    Of several ranks each gets its share of every batch.
    """

    def __init__(
        self,
        store: Store,
        batch_tokens: int,
        seed: int = 0,
        *,
        longest: int | None = None,
        ends: int = 1,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.store, self.shuffle, self.rank, self.world = store, shuffle, rank, world
        self.longest, self.ends = longest, ends  # of a row; between its texts
        self.sides = tuple(side for side in store.sides if side != "label")
        lengths = np.full(len(store), specials(len(self.sides), ends), dtype=np.int64)
        for side in self.sides:
            lengths += store.lengths(side)
        lengths = lengths if longest is None else np.minimum(lengths, longest)
        # The planner adds the end of a sentence itself, and leaves out what is longer than a batch: nothing is.
        budget = max(batch_tokens, int(lengths.max(initial=1)))
        self.planner = Planner(lengths - 1, lengths - 1, budget, seed)
        self._planned: tuple[int, Plan] | None = None

    def count(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def make(self, cursor: Cursor) -> Batch:
        rows = share_of(self._plan(cursor.epoch).rows(cursor.index), self.rank, self.world)
        texts = [self.store.rows(side, rows) for side in self.sides]
        labels = torch.from_numpy(self.store.rows("label", rows).tokens.astype(np.int64))
        sequences = joined(texts, self.longest, self.ends)
        return sequence_batch(sequences, labels, self.store.line_numbers(rows), cursor.index)

    def _plan(self, epoch: int) -> Plan:
        if not self.shuffle:
            epoch = 0
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self.planner.plan(epoch) if self.shuffle else self.planner.fixed())
        return self._planned[1]
