"""Batches of running text with hidden tokens, for an encoder that learns to fill them in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwise.data.batch import Batch, pad
from headwise.data.cursor import Cursor, share_of
from headwise.data.joined_texts import specials
from headwise.data.masking import Masking
from headwise.data.plan import Plan, Planner
from headwise.data.sequences import sequence_batch
from headwise.data.store import Store
from headwise.errors import DataError
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import PAD


class MaskedBatches:
    """Lines of a text, of similar length together; a line that is longer than the network can read is cut in pieces.

    Of several ranks each gets its share of every batch. Without `shuffle` (validation) what is hidden is the same each
    time.
    """

    def __init__(
        self,
        store: Store,
        batch_tokens: int,
        masking: Masking,
        *,
        longest: int | None = None,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.store, self.masking, self.shuffle, self.rank, self.world = store, masking, shuffle, rank, world
        (self.side,) = store.sides
        room = (longest or batch_tokens) - specials(1)
        if room < 1:
            raise DataError(f"an input of {room + specials(1)} tokens has no room for text; raise model.max_length")
        self.rows, self.starts, self.lengths = cut_rows(store.lengths(self.side).astype(np.int64), room)
        if not len(self.rows):
            raise DataError("there is no text left to train on")
        whole = self.lengths + specials(1)
        # The planner adds one for the end of a sentence itself.
        budget = max(batch_tokens, int(whole.max()))
        self.planner = Planner(whole - 1, whole - 1, budget, masking.seed)
        self._planned: tuple[int, Plan] | None = None

    def count(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def make(self, cursor: Cursor) -> Batch:
        pieces = share_of(self._plan(cursor.epoch).rows(cursor.index), self.rank, self.world)
        rows, starts = self.rows[pieces], self.starts[pieces]
        text = self.store.parts(self.side, rows, starts, self.lengths[pieces])
        places = self.store.offsets(self.side, rows) + starts
        seen, asked = self.masking.hide(text, places, cursor.epoch if self.shuffle else 0)
        if len(asked) and not asked.any():
            asked[0] = True  # a batch without a question would have no loss
        return masked_batch(seen, text, asked, self.store.line_numbers(rows), cursor.index)

    def _plan(self, epoch: int) -> Plan:
        if not self.shuffle:
            epoch = 0
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self.planner.plan(epoch) if self.shuffle else self.planner.fixed())
        return self._planned[1]


def masked_batch(
    seen: Ragged, text: Ragged, asked: NDArray[np.bool_], lines: NDArray[np.integer] | None = None, index: int = 0
) -> Batch:
    """The network reads `seen` between begin and end; its targets are the tokens of `text` where it is asked."""
    wanted = pad(Ragged(np.where(asked, text.tokens, PAD), text.lengths), start=PAD, end=PAD)
    return sequence_batch(seen, wanted, lines, index, ignore=PAD)


def cut_rows(lengths: NDArray[np.int64], room: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows cut into pieces of at most `room` tokens: the row, the start and the length of each piece."""
    counts = -(-lengths // room)
    rows = np.repeat(np.arange(len(lengths)), counts)
    numbers = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, numbers * room, np.minimum(lengths[rows] - numbers * room, room)


def candidates(vocabulary: int, special: tuple[int, ...]) -> NDArray[np.int64]:
    """The ids that a token may be replaced by: all but special ones."""
    return np.setdiff1d(np.arange(vocabulary), np.array(special))
