"""Batches of running text for language models.

The text is one long stream: the pieces of each line and an end of sentence after it (an empty line is an end alone),
and one end of sentence before everything, so that each token of the text is a target exactly once. A model that
begins a text from nothing is therefore started with an end of sentence.

Positions count targets: position p is what is to be said after position p - 1.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.data.batch import Batch
from headwise.data.cursor import Cursor, share_of
from headwise.data.plan import generator
from headwise.data.store import Store
from headwise.errors import DataError
from headwise.text.tokenizer import EOS, PAD


def block_batch(rows: NDArray[np.integer], lines: NDArray[np.integer] | None = None, index: int = 0) -> Batch:
    """Blocks of running text from rows of T + 1 tokens: targets are the inputs one token on."""
    whole = torch.from_numpy(np.asarray(rows, dtype=np.int64))  # (B, T + 1)
    return Batch.of((whole[:, :-1].contiguous(),), whole[:, 1:].contiguous(), lines, index)


class TokenStream:
    """The text of a store with its ends of sentence, read from anywhere."""

    def __init__(self, store: Store) -> None:
        self.store = store
        (self.side,) = store.sides
        self.length = store.manifest.tokens[self.side] + len(store)
        if not self.length:
            raise DataError("there is no text left to train on")

    def read(self, start: int, stop: int) -> NDArray[np.int64]:
        """Tokens at positions `start` to `stop`; position -1 is the end of sentence before everything."""
        if start < 0:
            return np.concatenate(([EOS], self.read(0, stop))) if stop > 0 else np.array([EOS])
        tokens = np.full(stop - start, EOS, dtype=np.int64)
        first, last = self.row(start), self.row(stop - 1)
        ends = np.array([self._begin(row + 1) - 1 - start for row in range(first, last + 1)])
        word = np.ones(len(tokens), dtype=bool)
        word[ends[ends < len(tokens)]] = False
        skipped = start - first  # the stream is ahead of the store by one end for each line before
        tokens[word] = self.store.slice(self.side, skipped, skipped + int(word.sum()))
        return tokens

    def row(self, position: int) -> int:
        """The row of the store that a position belongs to."""
        return bisect_right(range(len(self.store)), position, key=self._begin) - 1

    def _begin(self, row: int) -> int:
        return self.store.offset(self.side, row) + row

    def batch(self, starts: NDArray[np.integer], stops: NDArray[np.integer], width: int, index: int) -> Batch:
        """One row for each span of target positions (at most `width` of them), padded at its end."""
        rows = np.full((len(starts), width + 1), PAD, dtype=np.int64)
        for row, start, stop in zip(rows, starts.tolist(), stops.tolist(), strict=True):
            if stop > start:
                row[: stop - start + 1] = self.read(start - 1, stop)
        begins = np.array([self.row(min(start, self.length - 1)) for start in starts.tolist()], dtype=np.int64)
        return block_batch(rows, self.store.line_numbers(begins), index)


class StreamBatches:
    """Contiguous: the text is cut into parallel streams, and each batch goes on where the one before it ended.

    Row b of every batch is of stream b, so a model may keep its memory from batch to batch; index 0 begins anew. The
    text is not shuffled. Of several ranks each gets some of the streams.
    """

    def __init__(self, store: Store, batch_tokens: int, width: int, *, rank: int = 0, world: int = 1) -> None:
        self.stream, self.width = TokenStream(store), width
        streams = max(1, min(batch_tokens // width, self.stream.length))
        self.share = -(-self.stream.length // streams)  # positions of a stream; the last may have fewer
        self.begins = share_of(np.arange(streams) * self.share, rank, world)

    def count(self, epoch: int) -> int:
        return -(-self.share // self.width)

    def make(self, cursor: Cursor) -> Batch:
        done = cursor.index * self.width
        starts = np.minimum(self.begins + done, self.stream.length)
        stops = np.minimum(self.begins + min(done + self.width, self.share), self.stream.length)
        return self.stream.batch(starts, stops, self.width, cursor.index)


class BlockBatches:
    """Packed: the text is cut into blocks, which are shuffled anew in each epoch, cut at other places each time."""

    def __init__(
        self,
        store: Store,
        batch_tokens: int,
        width: int,
        seed: int = 0,
        *,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.stream, self.width, self.seed, self.shuffle = TokenStream(store), width, seed, shuffle
        self.rank, self.world = rank, world
        self.blocks_of_a_batch = max(1, batch_tokens // width)
        self._planned: tuple[int, NDArray[np.int64]] | None = None

    def count(self, epoch: int) -> int:
        return -(-len(self._plan(epoch)) // self.blocks_of_a_batch)

    def make(self, cursor: Cursor) -> Batch:
        first = cursor.index * self.blocks_of_a_batch
        begins = share_of(self._plan(cursor.epoch)[first : first + self.blocks_of_a_batch], self.rank, self.world)
        stops = np.minimum(begins + self.width, self.stream.length)
        return self.stream.batch(np.maximum(begins, 0), stops, self.width, cursor.index)

    def _plan(self, epoch: int) -> NDArray[np.int64]:
        """Where the blocks of an epoch begin; the first may begin before the text."""
        if not self.shuffle:
            epoch = 0
        if self._planned is None or self._planned[0] != epoch:
            chance = generator(self.seed, epoch, 1)
            shift = int(chance.integers(self.width)) if self.shuffle else 0
            begins = np.arange(-shift, self.stream.length, self.width, dtype=np.int64)
            if self.shuffle:
                chance.shuffle(begins)
            self._planned = (epoch, begins)
        return self._planned[1]
