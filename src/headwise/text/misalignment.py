"""Where two sides stop fitting each other: a line lost in the middle shifts all that follows.

The lengths of a sentence and its translation are correlated; of a sentence and its neighbour's translation hardly. So
in windows of lines the correlation is computed at lag 0 and at other lags: where the sides are shifted by k lines,
lag 0 falls and lag k rises. The windows' evidence is added up, and the run of windows with the largest sum is taken if
chance does not explain it. Working within windows removes what slow changes of length (documents, sorting) would feign.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WINDOW = 100
MAX_LAG = 10
# In standard deviations of what unrelated lengths would give.
CHANCE = 6.0
LEAST_CORRELATION = 0.3

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shift:
    first: int  # index of the first pair (from 0) that is suspected, approximately
    last: int  # of the last
    lag: int | None  # source line i belongs to target line i + lag; None: no lag within reach fits
    before: float  # length correlation elsewhere
    within: float  # length correlation in the suspected range


class Lengths:
    """Lengths of both sides, four bytes a pair."""

    def __init__(self) -> None:
        self.source, self.target = array("H"), array("H")

    def add(self, sources: Iterable[int], targets: Iterable[int]) -> None:
        self.source.extend([min(length, 65535) for length in sources])
        self.target.extend([min(length, 65535) for length in targets])

    def correlation(self) -> float | None:
        """Over the whole corpus, of the lengths' logarithms; None where one side is all of one length."""
        left, right = _logarithms(self.source), _logarithms(self.target)
        if len(left) < 2 or left.std() == 0 or right.std() == 0:
            return None
        return float(np.corrcoef(left, right)[0, 1])

    def find_shift(self) -> Shift | None:
        count = len(self.source) // WINDOW
        if count < 4:
            return None
        left, right = _logarithms(self.source), _logarithms(self.target)
        aligned = _fisher(_window_correlations(left, right, 0, count))
        return _known_lag(left, right, aligned) or _lost(left, right, aligned)


def _known_lag(left: Numbers, right: Numbers, aligned: Numbers) -> Shift | None:
    """The range in which another lag fits better than none."""
    runs = []
    for lag in (lag for size in range(1, MAX_LAG + 1) for lag in (size, -size)):
        shifted = _fisher(_window_correlations(left, right, lag, len(aligned)))
        start, end, score = _best_run(shifted - aligned)
        if score > CHANCE and np.tanh(shifted[start:end].mean()) > LEAST_CORRELATION:
            runs.append((start, -score, end, lag))
    if not runs:
        return None
    # Where lines are lost twice there are two runs; the first is the one to mend first.
    start, _, end, lag = min(runs)
    first = _boundary(left, right, lag, start, entering=True) if start else 0
    last = _boundary(left, right, lag, end, entering=False) if end < len(aligned) else len(left)
    return Shift(first, last - 1, lag, _outside(aligned, start, end), float(np.tanh(aligned[start:end].mean())))


def _lost(left: Numbers, right: Numbers, aligned: Numbers) -> Shift | None:
    """The range in which lengths do not fit although elsewhere they do: a large shift, or text of no relation."""
    usual = float(np.quantile(aligned, 0.9))  # most of the corpus may be lost
    if np.tanh(usual) < 2 * LEAST_CORRELATION:
        return None
    # Windows whose lines are nearly all of one length say nothing; they count as usual.
    silent = _spread(left, len(aligned)) < 0.3 * left.std()
    silent |= _spread(right, len(aligned)) < 0.3 * right.std()
    start, end, score = _best_run(np.where(silent, -0.5 * usual, 0.4 * usual - aligned))
    within = float(np.tanh(aligned[start:end].mean())) if end > start else 1.0
    if score < CHANCE or end - start < 3 or within > 0.4 * np.tanh(usual):
        return None
    return Shift(start * WINDOW, min(end * WINDOW, len(left)) - 1, None, _outside(aligned, start, end), within)


def _logarithms(lengths: array[int]) -> Numbers:
    values = np.frombuffer(lengths, dtype=np.uint16) if lengths else np.zeros(0)  # an empty buffer is refused
    return np.log1p(values.astype(np.float64))


def _window_correlations(left: Numbers, right: Numbers, lag: int, count: int) -> Numbers:
    """Correlation of left[i] with right[i + lag] in each of `count` windows of i."""
    partner = np.clip(np.arange(count * WINDOW) + lag, 0, len(right) - 1)
    x = left[: count * WINDOW].reshape(count, WINDOW)
    y = right[partner].reshape(count, WINDOW)
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    correlations: Numbers = np.divide((x * y).sum(axis=1), scale, out=np.zeros(count), where=scale > 1e-9)
    return correlations


def _fisher(correlations: Numbers) -> Numbers:
    """To a scale on which the chance deviation is 1 / sqrt(WINDOW - 3) everywhere."""
    return np.arctanh(np.clip(correlations, -0.99, 0.99))


def _best_run(gains: Numbers) -> tuple[int, int, float]:
    """The run of windows with the largest sum (Kadane), and that sum in standard deviations of chance."""
    sums = np.concatenate(([0.0], np.cumsum(gains)))
    lowest = np.minimum.accumulate(sums)
    end = int(np.argmax(sums - lowest))
    start = int(np.argmin(sums[: end + 1]))
    deviation = np.sqrt(2.0 * max(end - start, 1) / (WINDOW - 3))
    return start, end, float((sums[end] - sums[start]) / deviation)


def _boundary(left: Numbers, right: Numbers, lag: int, window: int, *, entering: bool) -> int:
    """The line at which lag 0 and `lag` change places, searched within two windows of the coarse boundary."""
    low, high = max(0, (window - 2) * WINDOW), min(len(left), (window + 2) * WINDOW)
    index = np.arange(low, high)
    offset = np.median(right - left[: len(right)])
    aligned = np.abs(right[index] - left[index] - offset)
    shifted = np.abs(right[np.clip(index + lag, 0, len(right) - 1)] - left[index] - offset)
    # Before the boundary `aligned` should be the small one, after it `shifted` (the other way round when leaving).
    cost = np.concatenate(([0.0], np.cumsum(aligned - shifted)))
    return low + int(np.argmin(cost) if entering else np.argmax(cost))


def _spread(values: Numbers, count: int) -> Numbers:
    spread: Numbers = values[: count * WINDOW].reshape(count, WINDOW).std(axis=1)
    return spread


def _outside(aligned: Numbers, start: int, end: int) -> float:
    rest = np.concatenate((aligned[:start], aligned[end:]))
    return float(np.tanh(rest.mean())) if len(rest) else float("nan")
