from __future__ import annotations

import numpy as np
import pytest
import torch

from headwise.data.batch import Batch
from headwise.data.cursor import Cursor, share_of, walk


class Counted:
    """Epochs of two and then of three batches, whose one target says which they are."""

    def count(self, epoch: int) -> int:
        return 2 + epoch % 2

    def make(self, cursor: Cursor) -> Batch:
        return Batch.of((), torch.tensor([10 * cursor.epoch + cursor.index + 1]), index=cursor.index)


def test_a_walk_goes_from_epoch_to_epoch_and_says_what_is_next() -> None:
    walked = [(int(batch.targets) - 1, cursor) for batch, cursor in walk(Counted(), epochs=2)]
    after = [Cursor(0, 1), Cursor(1, 0), Cursor(1, 1), Cursor(1, 2), Cursor(2, 0)]
    assert walked == list(zip([0, 1, 10, 11, 12], after, strict=True))


def test_a_walk_may_begin_anywhere_and_need_not_end() -> None:
    walked = walk(Counted(), Cursor(1, 2))
    assert [int(next(walked)[0].targets) - 1 for _ in range(4)] == [12, 20, 21, 30]
    assert list(walk(Counted(), Cursor(2, 0), epochs=2)) == []


@pytest.mark.parametrize("count", [0, 1, 2, 5, 17])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_shares_of_ranks_are_those_of_threads(count: int, world: int) -> None:
    rows = np.arange(count)
    shares = [share_of(rows, rank, world).tolist() for rank in range(world)]
    batch = Batch.of((), torch.ones(count, dtype=torch.int64), lines=rows)
    assert [share for share in shares if share] == [part.lines.tolist() for part in batch.split(world)]
    assert [row for share in shares for row in share] == rows.tolist()
