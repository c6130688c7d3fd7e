"""Updates are timed on batches from all over the epoch, on a model that is thrown away."""

from __future__ import annotations

from typing import Any

from headwise.data.cursor import Cursor
from headwise.training import timing


class CountedBatches:
    def __init__(self, count: int) -> None:
        self.total, self.made = count, list[int]()

    def count(self, epoch: int) -> int:
        return self.total

    def make(self, cursor: Cursor) -> Any:
        self.made.append(cursor.index)
        return cursor


def test_batches_are_taken_from_the_whole_epoch_and_the_time_is_positive() -> None:
    batches, updates = CountedBatches(1000), list[Any]()
    found = timing.seconds_per_update(lambda: lambda batch, rate, step: updates.append(batch), batches)  # type: ignore[arg-type, return-value]
    assert found > 0
    assert len(updates) == timing.WARM_UPDATES + timing.TIMED_UPDATES
    assert batches.made[0] == 0
    assert batches.made[-1] >= 800


def test_a_short_epoch_is_gone_through_more_than_once() -> None:
    batches = CountedBatches(1)
    timing.seconds_per_update(lambda: lambda batch, rate, step: None, batches)  # type: ignore[arg-type, return-value]
    assert set(batches.made) == {0}
