"""Inputs of an encoder, begin, text, end (and a second text, end), and batches of them with their labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.data.batch import Batch, pad
from headwise.data.cursor import Cursor, share_of
from headwise.data.plan import Plan, Planner
from headwise.data.store import Store
from headwise.text.ragged import Ragged, spans
from headwise.text.tokenizer import BOS, EOS

Ints = NDArray[np.integer]
NO_LABEL = -1  # the `ignore` of batches with labels: class 0 is a class


def joined(texts: Sequence[Ragged], longest: int | None = None) -> Ragged:
    """One or two texts per row as one sequence, with an end of sentence between them, without begin and last end.

    Of a row that is longer than `longest` tokens, with its special tokens, the longer text is cut at its end.
    """
    lengths = [np.asarray(text.lengths, dtype=np.int64) for text in texts]
    room = None if longest is None else max(longest - specials(len(texts)), 0)
    kept = lengths if room is None else _fitting(lengths, room)
    starts = [np.cumsum(length) - length for length in lengths]
    tokens = [text.tokens[spans(start, keep)] for text, start, keep in zip(texts, starts, kept, strict=True)]
    if len(texts) == 1:
        return Ragged(tokens[0], kept[0])
    first, second = kept
    rows = np.arange(len(first))
    # The rows of both texts and of the ends between them, each token with its row: a stable sort joins them.
    order = np.argsort(np.concatenate((np.repeat(rows, first), rows, np.repeat(rows, second))), kind="stable")
    ends = np.full(len(rows), EOS, dtype=np.int64)
    return Ragged(
        np.concatenate((tokens[0].astype(np.int64), ends, tokens[1].astype(np.int64)))[order], first + second + 1
    )


def specials(texts: int) -> int:
    """Special tokens of an input with so many texts: a begin, and an end after each text."""
    return 1 + texts


def _fitting(lengths: list[NDArray[np.int64]], room: int) -> list[NDArray[np.int64]]:
    """The lengths to keep, so that a row has at most `room` tokens: of two texts the longer one gives way first."""
    if len(lengths) == 1:
        return [np.minimum(lengths[0], room)]
    first, second = lengths
    half = room // 2
    first_kept = np.minimum(first, np.maximum(room - second, room - half))
    return [first_kept, np.minimum(second, room - first_kept)]


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
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.store, self.shuffle, self.rank, self.world, self.longest = store, shuffle, rank, world, longest
        self.sides = tuple(side for side in store.sides if side != "label")
        lengths = np.full(len(store), specials(len(self.sides)), dtype=np.int64)
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
        return sequence_batch(joined(texts, self.longest), labels, self.store.line_numbers(rows), cursor.index)

    def _plan(self, epoch: int) -> Plan:
        if not self.shuffle:
            epoch = 0
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self.planner.plan(epoch) if self.shuffle else self.planner.fixed())
        return self._planned[1]
