"""Several corpora as one: their texts one after the other, and which of their rows an epoch has.

Of a part with n rows and weight w, epoch e has the rows from place floor(e·w·n) to floor((e + 1)·w·n) of an endless
repetition of one random order. So a weight of 2 is every row twice per epoch, a weight of 0.5 every second row in turn,
and after any number of epochs all rows of a part have been seen equally often, to within one time. What an epoch has is
a pure function of seed and epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from headwise.data.chunks import Chunk, Chunks
from headwise.data.plan import generator
from headwise.text.filters import FilterCounts

_PURPOSE = 1  # of a generator; that of a planner is 0
PART = "part"  # the side of a store that has the number of each row's part


class MixedChunks:
    """Streams the parts of a mixture, like `Chunks` one corpus; the side `part` names the part of each row."""

    def __init__(self, parts: dict[str, Chunks]) -> None:
        self.parts = parts
        self.text_sides = next(iter(parts.values())).sides
        self.sides = (*self.text_sides, PART)

    def __iter__(self) -> Iterator[Chunk]:
        for chunks in self.parts.values():
            chunks.counts, chunks.files = FilterCounts(), []
        before = 0  # lines of the parts before this one
        for name, chunks in self.parts.items():
            for chunk in chunks:
                yield Chunk({**chunk.texts, PART: [name] * len(chunk.lines)}, before + chunk.lines)
            before += sum(lines for _, lines in chunks.files)

    @property
    def counts(self) -> FilterCounts:
        total = FilterCounts()
        for chunks in self.parts.values():
            total.kept += chunks.counts.kept
            for reason, count in chunks.counts.dropped.items():
                total.dropped[reason] = total.dropped.get(reason, 0) + count
        return total

    @property
    def files(self) -> list[tuple[str, int]]:
        return [file for chunks in self.parts.values() for file in chunks.files]

    @property
    def names(self) -> list[str]:
        return [name for chunks in self.parts.values() for name in chunks.names]

    @property
    def reading(self) -> list[object]:
        return [[name, len(chunks.names), chunks.reading] for name, chunks in self.parts.items()]


class Mixing:
    """Chooses the rows of each epoch; `parts` has the number of every row's part."""

    def __init__(self, parts: NDArray[np.integer], weights: Sequence[float], seed: int) -> None:
        self.weights = weights
        # One number per part, so that no two parts have the same order.
        self._orders = [
            generator(seed, number, _PURPOSE).permutation(np.flatnonzero(parts == number).astype(np.int32))
            for number in range(len(weights))
        ]

    def rows(self, epoch: int) -> NDArray[np.int32]:
        """The rows of an epoch, part after part; a row may occur several times."""
        return np.concatenate([self._of(*part, epoch) for part in zip(self._orders, self.weights, strict=True)])

    def _of(self, order: NDArray[np.int32], weight: float, epoch: int) -> NDArray[np.int32]:
        if not len(order):
            return order
        per_epoch = weight * len(order)
        places = np.arange(int(epoch * per_epoch), int((epoch + 1) * per_epoch))
        return order[places % len(order)]
