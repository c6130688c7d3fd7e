"""Detects where two sides stop matching: a line missing in the middle shifts everything after it.

The lengths of a sentence and its translation correlate; those of a sentence and its neighbour's translation hardly do.
So the correlation is computed in windows of lines, at lag 0 and at other lags: where the sides are shifted by k lines,
lag 0 falls and lag k rises. The evidence of the windows is summed, and the run of windows with the largest sum is
reported unless chance explains it. Within a window, slow changes of length (documents, sorting) do not look like
correlation.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WINDOW = 100
MAX_LAG = 10
# The least evidence, in standard deviations of what unrelated lengths give by chance.
CHANCE = 6.0
MIN_CORRELATION = 0.3

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shift:
    """A range of pairs that are probably misaligned."""

    first: int  # approximate index, from 0, of the first suspected pair
    last: int  # and of the last
    lag: int | None  # source line i belongs to target line i + lag; None: no lag up to MAX_LAG fits
    before: float  # length correlation elsewhere
    within: float  # length correlation in the suspected range


class Lengths:
    """Stores the lengths of both sides, in four bytes per pair."""

    def __init__(self) -> None:
        self.source, self.target = array("H"), array("H")

    def add(self, sources: Iterable[int], targets: Iterable[int]) -> None:
        self.source.extend([min(length, 65535) for length in sources])
        self.target.extend([min(length, 65535) for length in targets])

    def correlation(self) -> float | None:
        """Correlates the log lengths over the whole corpus; None if all lines of a side have the same length."""
        left, right = _logarithms(self.source), _logarithms(self.target)
        if len(left) < 2 or left.std() == 0 or right.std() == 0:
            return None
        return float(np.corrcoef(left, right)[0, 1])

    def find_shift(self) -> Shift | None:
        """Finds the first range that is shifted by a few lines, else one whose sides do not match at all."""
        count = len(self.source) // WINDOW
        if count < 4:
            return None
        left, right = _logarithms(self.source), _logarithms(self.target)
        aligned = _fisher(_window_correlations(left, right, 0, count))
        return _shifted_range(left, right, aligned) or _unrelated_range(left, right, aligned)


def _shifted_range(left: Numbers, right: Numbers, aligned: Numbers) -> Shift | None:
    """Finds the first range where another lag fits better than lag 0."""
    runs = []
    for lag in (lag for size in range(1, MAX_LAG + 1) for lag in (size, -size)):
        shifted = _fisher(_window_correlations(left, right, lag, len(aligned)))
        start, end, score = _best_run(shifted - aligned)
        if score > CHANCE and np.tanh(shifted[start:end].mean()) > MIN_CORRELATION:
            runs.append((start, -score, end, lag))
    if not runs:
        return None
    # If lines are missing in two places there are two runs; the first one has to be fixed first.
    start, _, end, lag = min(runs)
    first = _boundary(left, right, lag, start, entering=True) if start else 0
    last = _boundary(left, right, lag, end, entering=False) if end < len(aligned) else len(left)
    return Shift(first, last - 1, lag, _outside(aligned, start, end), float(np.tanh(aligned[start:end].mean())))


def _unrelated_range(left: Numbers, right: Numbers, aligned: Numbers) -> Shift | None:
    """Finds a range where lengths do not correlate although they do elsewhere: a large shift, or unrelated text."""
    usual = float(np.quantile(aligned, 0.9))  # a high quantile: most of the corpus may be misaligned
    if np.tanh(usual) < 2 * MIN_CORRELATION:
        return None
    # Windows whose lines all have nearly the same length tell nothing; they count as aligned.
    uninformative = _spread(left, len(aligned)) < 0.3 * left.std()
    uninformative |= _spread(right, len(aligned)) < 0.3 * right.std()
    start, end, score = _best_run(np.where(uninformative, -0.5 * usual, 0.4 * usual - aligned))
    within = float(np.tanh(aligned[start:end].mean())) if end > start else 1.0
    if score < CHANCE or end - start < 3 or within > 0.4 * np.tanh(usual):
        return None
    return Shift(start * WINDOW, min(end * WINDOW, len(left)) - 1, None, _outside(aligned, start, end), within)


def _logarithms(lengths: array[int]) -> Numbers:
    values = np.frombuffer(lengths, dtype=np.uint16) if lengths else np.zeros(0)  # frombuffer rejects an empty buffer
    return np.log1p(values.astype(np.float64))


def _window_correlations(left: Numbers, right: Numbers, lag: int, count: int) -> Numbers:
    """Correlates left[i] with right[i + lag] in each of `count` windows of i."""
    partner = np.clip(np.arange(count * WINDOW) + lag, 0, len(right) - 1)
    x = left[: count * WINDOW].reshape(count, WINDOW)
    y = right[partner].reshape(count, WINDOW)
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    correlations: Numbers = np.divide((x * y).sum(axis=1), scale, out=np.zeros(count), where=scale > 1e-9)
    return correlations


def _fisher(correlations: Numbers) -> Numbers:
    """Applies Fisher's transformation: afterwards chance deviates by 1 / sqrt(WINDOW - 3) at any correlation."""
    return np.arctanh(np.clip(correlations, -0.99, 0.99))


def _best_run(gains: Numbers) -> tuple[int, int, float]:
    """Finds the run of windows with the largest sum (Kadane), and that sum in standard deviations of chance."""
    sums = np.concatenate(([0.0], np.cumsum(gains)))
    lowest = np.minimum.accumulate(sums)
    end = int(np.argmax(sums - lowest))
    start = int(np.argmin(sums[: end + 1]))
    deviation = np.sqrt(2.0 * max(end - start, 1) / (WINDOW - 3))
    return start, end, float((sums[end] - sums[start]) / deviation)


def _boundary(left: Numbers, right: Numbers, lag: int, window: int, *, entering: bool) -> int:
    """Finds the line where lag 0 gives way to `lag` (or the reverse), within two windows of the coarse boundary."""
    low, high = max(0, (window - 2) * WINDOW), min(len(left), (window + 2) * WINDOW)
    index = np.arange(low, high)
    offset = np.median(right - left[: len(right)])
    aligned = np.abs(right[index] - left[index] - offset)
    shifted = np.abs(right[np.clip(index + lag, 0, len(right) - 1)] - left[index] - offset)
    # `aligned` should be the smaller one before the boundary and `shifted` after it (the reverse when leaving).
    cost = np.concatenate(([0.0], np.cumsum(aligned - shifted)))
    return low + int(np.argmin(cost) if entering else np.argmax(cost))


def _spread(values: Numbers, count: int) -> Numbers:
    spread: Numbers = values[: count * WINDOW].reshape(count, WINDOW).std(axis=1)
    return spread


def _outside(aligned: Numbers, start: int, end: int) -> float:
    rest = np.concatenate((aligned[:start], aligned[end:]))
    return float(np.tanh(rest.mean())) if len(rest) else float("nan")
