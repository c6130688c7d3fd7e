"""Confidence: a number in [0, 1] that estimates how good a translation is.

It is computed from the mean log-probability of the tokens. The exponential of that mean, the geometric mean of the
token probabilities, is in [0, 1] but means little by itself: models are over- or underconfident. So it is calibrated on
held-out sentences with references: `fit_calibration` learns the quality (sentence chrF / 100, say) that sentences of a
given mean log-probability had. A confidence of 0.6 then means that such sentences scored 60 on average. Without a
calibration, the geometric mean itself is returned.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headwise.errors import UsageError

_KNOTS = 20


def confidence(mean_log_prob: float, calibration: Mapping[str, Any] | None = None) -> float:
    """Estimates the quality by the calibration, or else the geometric mean of the token probabilities; NaN for NaN."""
    if math.isnan(mean_log_prob):
        return math.nan
    if not calibration:
        return min(1.0, math.exp(mean_log_prob))
    x, y = calibration["mean_log_prob"], calibration["quality"]
    right = min(max(bisect_right(x, mean_log_prob), 1), len(x) - 1)
    if len(x) == 1 or not x[0] < mean_log_prob < x[-1]:
        found = y[0] if mean_log_prob <= x[0] else y[-1]
    else:
        share = (mean_log_prob - x[right - 1]) / (x[right] - x[right - 1])
        found = y[right - 1] + share * (y[right] - y[right - 1])
    return min(1.0, max(0.0, float(found)))


def fit_calibration(
    mean_log_probs: Sequence[float], qualities: Sequence[float], measure: str = "chrF / 100"
) -> dict[str, Any]:
    """Fits a non-decreasing curve to held-out sentences (isotonic regression), as a few knots for a model's card.

    `qualities` are in [0, 1]. Each knot is the mean of equally many sentences, so that an outlier has little effect.
    """
    if len(mean_log_probs) != len(qualities) or not mean_log_probs:
        raise UsageError(
            f"a calibration needs one quality per sentence, not {len(qualities)} for {len(mean_log_probs)} sentences"
        )
    order = np.argsort(np.asarray(mean_log_probs), kind="stable")
    x, y = np.asarray(mean_log_probs, dtype=float)[order], np.asarray(qualities, dtype=float)[order]
    groups = np.array_split(np.arange(len(x)), min(_KNOTS, max(1, len(x) // 5)))
    heights = _pool([float(y[group].mean()) for group in groups], [len(group) for group in groups])
    return {
        "measure": measure,
        "sentences": len(x),
        "mean_log_prob": [round(float(x[group].mean()), 5) for group in groups],
        "quality": [round(float(np.clip(height, 0.0, 1.0)), 5) for height in heights],
    }


def calibration_error(confidences: Sequence[float], qualities: Sequence[float], bins: int = 10) -> float:
    """Computes the mean distance between confidence and quality over bins of equally many sentences."""
    order = np.argsort(np.asarray(confidences), kind="stable")
    expected, actual = np.asarray(confidences, dtype=float)[order], np.asarray(qualities, dtype=float)[order]
    groups = np.array_split(np.arange(len(expected)), min(bins, len(expected)))
    return float(sum(len(g) * abs(expected[g].mean() - actual[g].mean()) for g in groups) / len(expected))


def _pool(heights: list[float], weights: list[int]) -> list[float]:
    """Pools adjacent violators: returns the nearest non-decreasing sequence in weighted least squares."""
    blocks: list[tuple[float, int, int]] = []  # (height, weight, number of pooled values)
    for height, weight in zip(heights, weights, strict=True):
        block = (height, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            last = blocks.pop()
            total = last[1] + block[1]
            block = ((last[0] * last[1] + block[0] * block[1]) / total, total, last[2] + block[2])
        blocks.append(block)
    return [height for height, _, count in blocks for _ in range(count)]
