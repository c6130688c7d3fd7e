"""Trains unigram pieces (Kudo 2018, https://arxiv.org/abs/1804.10959) deterministically.

The library's own trainer walks a hash table in random order, so two runs on one corpus give different vocabularies.
This is the same algorithm on arrays: start with many candidate pieces, estimate their probabilities over all
segmentations by expectation-maximisation, remove those whose removal lowers the likelihood least, and repeat.

All words are stored end to end in one array of code points. An edge of a lattice is an occurrence of a piece; edges are
processed in groups of equal offset within their words, for all words at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CANDIDATES = 10  # candidate pieces per piece wanted
KEPT = 0.6  # share of the pieces that a round keeps
EM_ROUNDS = 2  # between removals
MAX_WORDS = 100_000  # distinct words considered, the most frequent ones
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # of the rolling hash: odd, with no pattern in its bits


def train(words: Mapping[str, int], alphabet: Sequence[str], wanted: int, longest: int) -> list[tuple[str, float]]:
    """Trains at most `wanted` pieces of at most `longest` characters; returns them with log probabilities, best first.

    Every character of `alphabet` is among them. There are fewer if the words have too few pieces that occur twice.
    """
    runs, counts = _known_runs(words, set(alphabet))
    pieces = [*sorted(alphabet)[:wanted], *_candidates(runs, counts, longest, CANDIDATES * wanted)]
    fixed = np.arange(len(pieces)) < len(alphabet)
    corpus = Lattice.of(runs, pieces, longest)
    inside = Lattice.of(pieces, pieces, longest).without_whole()  # the other ways to spell each piece
    alive = np.ones(len(pieces), dtype=bool)
    scores = _log_share(_sums(corpus.piece, counts[corpus.word], len(pieces)))
    while True:
        for _ in range(EM_ROUNDS):
            expected = corpus.expected_counts(scores, counts, len(pieces))
            scores = _log_share(expected)
        left = int(alive.sum())
        if left <= wanted:
            break
        loss = expected * (scores - inside.best(scores))
        loss[fixed], loss[~alive] = np.inf, -np.inf
        # Stable, so that ties keep the order of `pieces`.
        keep = np.argsort(-loss, kind="stable")[: max(wanted, int(left * KEPT))]
        alive = np.zeros(len(pieces), dtype=bool)
        alive[keep] = True
        corpus, inside = corpus.only(alive), inside.only(alive)
    order = [int(index) for index in np.argsort(-scores, kind="stable") if alive[index]]
    # Six decimals survive JSON unchanged.
    return [(pieces[index], round(float(scores[index]), 6)) for index in order]


@dataclass(frozen=True)
class Lattice:
    """The occurrences of pieces in words. Nodes are numbered consecutively: word w has nodes first[w] to last[w]."""

    first: Ints  # (words,)
    last: Ints
    start: Ints  # (edges,) node; sorted by the offset of the end in its word, then by the end
    end: Ints
    piece: Ints
    word: Ints

    @classmethod
    def of(cls, words: Sequence[str], pieces: Sequence[str], longest: int) -> Lattice:
        points, left, number = _end_to_end(words)
        hashes, ids = _table(pieces, longest)
        found: list[tuple[Ints, Ints, Ints]] = []
        for length, position, rolled in _windows(points, left, longest):
            place = np.minimum(np.searchsorted(hashes[length], rolled), max(0, len(hashes[length]) - 1))
            hit = hashes[length][place] == rolled if len(hashes[length]) else np.zeros(len(rolled), dtype=bool)
            found.append((position[hit], np.full(int(hit.sum()), length), ids[length][place[hit]]))
        position, lengths, piece = (np.concatenate(part) for part in zip(*found, strict=True))
        word = number[position]
        start = position + word  # a word of n characters has n + 1 nodes
        end = start + lengths
        sizes = np.array([len(text) for text in words], dtype=np.int64)
        last = np.cumsum(sizes + 1) - 1
        first = last - sizes
        order = np.lexsort((start, end, end - first[word]))
        return cls(first, last, start[order], end[order], piece[order], word[order])

    def only(self, alive: NDArray[np.bool_]) -> Lattice:
        return self._filtered(alive[self.piece])

    def without_whole(self) -> Lattice:
        """Removes the edges that span a whole word of more than one character."""
        whole = (self.start == self.first[self.word]) & (self.end == self.last[self.word])
        return self._filtered(~(whole & (self.end - self.start > 1)))

    def _filtered(self, keep: NDArray[np.bool_]) -> Lattice:
        edges = (self.start[keep], self.end[keep], self.piece[keep], self.word[keep])
        return Lattice(self.first, self.last, *edges)

    def forward(self, scores: Floats, *, best: bool = False) -> Floats:
        """Computes at each node the log of the total (or the highest) probability of all paths to it."""
        reached = np.full(int(self.last[-1]) + 1, -np.inf)
        reached[self.first] = 0.0
        for low, high in _groups(self.end - self.first[self.word]):
            node = self.end[low:high]
            _gather(reached, node, reached[self.start[low:high]] + scores[self.piece[low:high]], best)
        return reached

    def backward(self, scores: Floats) -> Floats:
        """Computes at each node the log of the total probability of all paths from it to the end of its word."""
        order = np.lexsort((self.end, self.start, -(self.start - self.first[self.word])))
        start, end, piece = self.start[order], self.end[order], self.piece[order]
        reached = np.full(int(self.last[-1]) + 1, -np.inf)
        reached[self.last] = 0.0
        for low, high in _groups((self.start - self.first[self.word])[order]):
            _gather(reached, start[low:high], reached[end[low:high]] + scores[piece[low:high]], best=False)
        return reached

    def expected_counts(self, scores: Floats, counts: Ints, size: int) -> Floats:
        """Computes how often each piece is used, over all segmentations of all words weighted by probability."""
        forward, backward = self.forward(scores), self.backward(scores)
        total = forward[self.last]
        share = np.exp(forward[self.start] + scores[self.piece] + backward[self.end] - total[self.word])
        return _sums(self.piece, share * counts[self.word], size)

    def best(self, scores: Floats) -> Floats:
        """Computes the log probability of the best segmentation of each word."""
        return self.forward(scores, best=True)[self.last]


def _sums(index: Ints, weights: Floats | Ints, size: int) -> Floats:
    return np.bincount(index, weights, size).astype(np.float64)


def _gather(reached: Floats, node: Ints, values: Floats, best: bool) -> None:
    """Writes to each node of the sorted `node` the maximum, or the log of the summed exponentials, of its values."""
    begins = np.flatnonzero(np.concatenate(([True], node[1:] != node[:-1])))
    top = np.maximum.reduceat(values, begins)
    if not best:
        sizes = np.diff(np.append(begins, len(node)))
        top = top + np.log(np.add.reduceat(np.exp(values - np.repeat(top, sizes)), begins))
    reached[node[begins]] = top


def _groups(keys: Ints) -> list[tuple[int, int]]:
    cuts = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
    return list(pairwise(cuts)) if len(keys) else []


def _log_share(counts: Floats) -> Floats:
    floor = np.maximum(counts, 0.5)  # a piece that is hardly used stays possible
    return np.asarray(np.log(floor) - np.log(floor.sum()), dtype=np.float64)


def _known_runs(words: Mapping[str, int], alphabet: set[str]) -> tuple[list[str], Ints]:
    """Splits words at characters without a piece; returns the parts and their counts, in a fixed order."""
    counts: dict[str, int] = {}
    for word, count in words.items():
        known = "".join(character if character in alphabet else "\n" for character in word)
        for run in known.split("\n"):
            if run:
                counts[run] = counts.get(run, 0) + count
    ranked = sorted(counts, key=lambda run: (-counts[run], run))[:MAX_WORDS]
    return ranked, np.array([counts[run] for run in ranked], dtype=np.int64)


def _end_to_end(words: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    """Returns the code points of all words, the characters left in the word at each (itself included), and its word."""
    points = np.frombuffer("".join(words).encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
    sizes = np.array([len(word) for word in words], dtype=np.int64)
    number = np.repeat(np.arange(len(words)), sizes)
    return points, np.cumsum(sizes)[number] - np.arange(len(points)), number


def _windows(points: Ints, left: Ints, longest: int) -> list[tuple[int, Ints, NDArray[np.uint64]]]:
    """Lists, for each length, the positions where that many characters of one word follow, and their hashes."""
    rolled = np.zeros(len(points), dtype=np.uint64)
    position = np.arange(len(points))
    windows = []
    for length in range(1, longest + 1):
        fits = left[position] >= length
        position, rolled = position[fits], rolled[fits]
        if not len(position):
            break
        rolled = (rolled + points[position + length - 1].astype(np.uint64) + np.uint64(1)) * _MULTIPLIER
        rolled ^= rolled >> np.uint64(29)
        windows.append((length, position, rolled))
    return windows


def _table(pieces: Sequence[str], longest: int) -> tuple[dict[int, NDArray[np.uint64]], dict[int, Ints]]:
    """Returns, for each length, the sorted hashes of the pieces of that length, and their ids."""
    points, left, number = _end_to_end(pieces)
    hashes = {length: np.zeros(0, dtype=np.uint64) for length in range(1, longest + 1)}
    ids = {length: np.zeros(0, dtype=np.int64) for length in range(1, longest + 1)}
    starts = np.concatenate(([True], number[1:] != number[:-1]))
    for length, position, rolled in _windows(points, left, longest):
        whole = starts[position] & (left[position] == length)
        order = np.argsort(rolled[whole])
        hashes[length], ids[length] = rolled[whole][order], number[position[whole]][order]
    return hashes, ids


def _candidates(words: list[str], counts: Ints, longest: int, most: int) -> list[str]:
    """Lists strings of two or more characters that occur twice: those that cover most text, alphabetically."""
    points, left, number = _end_to_end(words)
    text = "".join(words)
    begins: list[Ints] = []
    sizes: list[Ints] = []
    weights: list[Ints] = []
    for length, position, rolled in _windows(points, left, longest):
        if length == 1:
            continue
        _, first, inverse = np.unique(rolled, return_index=True, return_inverse=True)
        weight = np.bincount(inverse, counts[number[position]]).astype(np.int64)
        often = weight > 1
        begins.append(position[first[often]])
        sizes.append(np.full(int(often.sum()), length))
        weights.append(weight[often])
    if not begins:
        return []
    begin, size, weight = np.concatenate(begins), np.concatenate(sizes), np.concatenate(weights)
    chosen = np.lexsort((begin, -weight * size))[:most]
    return sorted(text[begin[index] : begin[index] + size[index]] for index in chosen.tolist())
