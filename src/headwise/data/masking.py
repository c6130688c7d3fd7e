"""Which tokens are hidden: dynamic masking as a pure function of seed, epoch and the place of a sentence.

Of all tokens a share is chosen, 15 % by default; of these 80 % become the mask, 10 % another token at random, and 10 %
stay as they are (Devlin et al. 2019, section 3.1). The shares are exact: of any stretch of the corpus that begins at
token a and ends before token b, floor(share · b + v) - floor(share · a + v) tokens are chosen, where v is drawn once
per epoch, and of ten chosen ones in a row eight, one and one are treated as above. So a sentence gets its share to
within one token, all sentences together get it to within one token, and on average it is exact at every length. With
whole words a sentence gets as many of them as fit into its share.

Which tokens of a sentence are chosen is decided by a hash of (seed, epoch, place of the token in the corpus).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwise.text.ragged import Ragged

# Of ten chosen tokens in a row eight are masked, one becomes another token, one stays.
_MASK, _OTHER, _SAME = range(3)
_KINDS = np.array([_MASK, _MASK, _MASK, _MASK, _OTHER, _MASK, _MASK, _MASK, _MASK, _SAME])
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Masking:
    """How tokens are hidden. `candidates` are the ids that a token may be replaced by at random."""

    mask: int
    candidates: Ints
    seed: int = 0
    share: float = 0.15
    word_starts: Flags | None = None  # by id; with it whole words are chosen

    def hide(self, sentences: Ragged, places: Ints, epoch: int) -> tuple[Ragged, Flags]:
        """What the network sees, and where it is asked: a flag for each token of all sentences end to end.

        `places` says where in the corpus, counted in tokens, each sentence begins.
        """
        lengths, tokens = np.asarray(sentences.lengths, dtype=np.int64), np.array(sentences.tokens, dtype=np.int64)
        row = np.repeat(np.arange(len(lengths)), lengths)
        position = np.arange(len(tokens)) + (places - (np.cumsum(lengths) - lengths))[row]
        shift, turn = self._draw(np.array([-1, -2]), epoch, 0)
        first, last = (np.floor(self.share * place + shift).astype(np.int64) for place in (places, places + lengths))
        chosen = self._choose(tokens, lengths, row, position, last - first, epoch)
        asked = np.flatnonzero(chosen)
        # The chosen tokens of a sentence are counted off in random order, from where the sentence before it ended.
        numbers = first[row[asked]] + _rank(self._draw(position[asked], epoch, 1), row[asked])
        kinds = _KINDS[(numbers + int(10 * turn)) % 10]
        tokens[asked[kinds == _MASK]] = self.mask
        others = asked[kinds == _OTHER]
        draws = self._draw(position[others], epoch, 2)
        tokens[others] = self.candidates[(draws * len(self.candidates)).astype(np.int64)]
        return Ragged(tokens, lengths), chosen

    def _choose(self, tokens: Ints, lengths: Ints, row: Ints, position: Ints, wanted: Ints, epoch: int) -> Flags:
        draws = self._draw(position, epoch, 0)
        if self.word_starts is None:
            chosen: Flags = _rank(draws, row) < wanted[row]
            return chosen
        chosen = np.zeros(len(tokens), dtype=bool)
        for start, length, room in zip((np.cumsum(lengths) - lengths).tolist(), lengths, wanted.tolist(), strict=True):
            begins = self.word_starts[tokens[start : start + length]]
            begins[:1] = True
            words = start + np.flatnonzero(begins)
            sizes = np.diff(np.append(words, start + length))
            for word in np.argsort(draws[words], kind="stable"):  # in random order, those that still fit
                if sizes[word] <= room:
                    chosen[words[word] : words[word] + sizes[word]] = True
                    room -= int(sizes[word])
        return chosen

    def _draw(self, position: Ints, epoch: int, stream: int) -> NDArray[np.float64]:
        """A number in [0, 1) for each place of the corpus, by a hash of seed, epoch, stream and place."""
        value = np.full(len(position), self.seed, dtype=np.uint64)
        with np.errstate(over="ignore"):
            for part in (np.int64(epoch), np.int64(stream), position):
                value = _mix(value ^ part.astype(np.uint64))
        return (value >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _rank(draws: NDArray[np.float64], row: Ints) -> Ints:
    """The place of each draw among those of its row, smallest first; `row` is sorted."""
    order = np.lexsort((draws, row))
    _, begins, counts = np.unique(row, return_index=True, return_counts=True)
    rank = np.empty(len(row), dtype=np.int64)
    rank[order] = np.arange(len(row)) - np.repeat(begins, counts)
    return rank


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64, a hash of 64 bits."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
