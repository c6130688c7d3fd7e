"""Stores sentences of different lengths in two flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ragged(NamedTuple):
    """Sentences stored end to end: sentence i is the next lengths[i] of `tokens`."""

    tokens: NDArray[np.integer]
    lengths: NDArray[np.integer]

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> Ragged:
        lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
        return cls(np.fromiter(chain.from_iterable(sentences), np.int64, count=int(lengths.sum())), lengths)

    def sentences(self) -> list[list[int]]:
        return (
            [part.tolist() for part in np.split(self.tokens, np.cumsum(self.lengths)[:-1])] if len(self.lengths) else []
        )


def spans(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Lists the indices starts[0], starts[0] + 1, … (lengths[0] of them), then those from starts[1], and so on."""
    wide = lengths.astype(np.int64)
    ends = np.cumsum(wide)
    return np.repeat(starts - (ends - wide), wide) + np.arange(ends[-1] if len(ends) else 0)
