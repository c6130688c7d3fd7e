"""Epochs of batches, each of which can be made by itself, and the cursor that says which one is next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from headwise.data.batch import Batch

Number = TypeVar("Number", bound=np.integer)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The next batch to be made."""

    epoch: int = 0
    index: int = 0


START = Cursor()


class Batches(Protocol):
    """Epochs of batches: any batch of any epoch can be made directly."""

    def count(self, epoch: int) -> int:
        """How many batches an epoch has."""
        ...

    def make(self, cursor: Cursor) -> Batch: ...


def walk(batches: Batches, cursor: Cursor = START, epochs: int | None = None) -> Iterator[tuple[Batch, Cursor]]:
    """Yields batches from `cursor` on, each with the cursor after it; without end, or to the end of `epochs`."""
    epoch, index = cursor.epoch, cursor.index
    while epochs is None or epoch < epochs:
        count = batches.count(epoch)
        while index < count:
            after = Cursor(epoch, index + 1) if index + 1 < count else Cursor(epoch + 1, 0)
            yield batches.make(Cursor(epoch, index)), after
            index += 1
        epoch, index = epoch + 1, 0


def share_of(rows: NDArray[Number], rank: int, world: int) -> NDArray[Number]:
    """The rows of one rank: contiguous, like the shares of threads (`Batch.split`), so that sums come out the same."""
    return rows[len(rows) * rank // world : len(rows) * (rank + 1) // world]
