"""Compares two language models on the same lines with a paired test: is the difference more than chance?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.errors import DataError, UsageError

SAMPLES, SEED = {"bootstrap": 1_000, "randomisation": 10_000}, 12345


@dataclass(frozen=True)
class LineComparison:
    """Bits per character of two models on the same lines; `p_value` is the chance of such a difference by accident."""

    baseline: float
    system: float
    p_value: float
    lines: int
    test: str

    @property
    def difference(self) -> float:
        return self.system - self.baseline

    @property
    def significant(self) -> bool:
        return self.p_value < 0.05

    @property
    def signature(self) -> str:
        return f"lines:{self.lines}|test:{self.test}|n:{SAMPLES[self.test]}|seed:{SEED}|each line by itself"


def compare_lines(
    baseline: Sequence[float], system: Sequence[float], characters: Sequence[int], test: str = "bootstrap"
) -> LineComparison:
    """Compares log-probabilities (natural logarithm) of the same lines by two models.

    bootstrap: lines are drawn with replacement, and p is how often the difference is at least as far from the observed
    one as that is from 0 (Koehn 2004). randomisation: the models change places, line by line, at random.
    """
    if test not in SAMPLES:
        raise UsageError(f"unknown significance test '{test}'; choose one of {', '.join(SAMPLES)}")
    if not len(baseline) == len(system) == len(characters) or not len(characters):
        raise DataError("both models must score the same lines, and at least one")
    total = float(np.sum(characters))
    first, second = (-np.asarray(side, dtype=np.float64) / math.log(2) for side in (baseline, system))
    gaps = second - first  # bits per line
    observed = float(gaps.sum()) / total
    draw = np.random.default_rng(SEED)
    lengths = np.asarray(characters, dtype=np.float64)
    extreme = 0
    for _ in range(SAMPLES[test]):
        if test == "bootstrap":
            rows = draw.integers(0, len(gaps), len(gaps))
            extreme += abs(float(gaps[rows].sum() / lengths[rows].sum()) - observed) >= abs(observed)
        else:
            extreme += abs(float((gaps * draw.choice((-1.0, 1.0), len(gaps))).sum())) / total >= abs(observed)
    p_value = 1.0 if observed == 0 else (extreme + 1) / (SAMPLES[test] + 1)
    return LineComparison(float(first.sum()) / total, float(second.sum()) / total, p_value, len(gaps), test)
