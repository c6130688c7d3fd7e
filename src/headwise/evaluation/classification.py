"""Accuracy, F1 and calibration of a classifier, from a confusion matrix or from logits. Needs no torch.

The macro-average is over the labels that occur, as a truth or as an answer (scikit-learn's). A label that is never
answered has a precision of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_BINS = 15  # of the expected calibration error (Guo et al. 2017, arXiv 1706.04599)


@dataclass(frozen=True)
class LabelScore:
    """How well one label is found."""

    label: str
    precision: float
    recall: float
    f1: float
    rows: int  # that have this label in truth


@dataclass(frozen=True)
class Confusion:
    """How often each label (row) got each answer (column)."""

    labels: tuple[str, ...]
    matrix: Ints  # (C, C)

    @classmethod
    def of(cls, labels: Sequence[str], truth: Ints, answers: Ints) -> Confusion:
        matrix = np.zeros((len(labels), len(labels)), dtype=np.int64)
        np.add.at(matrix, (truth, answers), 1)
        return cls(tuple(labels), matrix)

    @property
    def rows(self) -> int:
        return int(self.matrix.sum())

    @property
    def accuracy(self) -> float:
        return float(self.matrix.trace()) / max(self.rows, 1)

    @property
    def macro_f1(self) -> float:
        """The mean of the labels' F1: a rare label counts as much as a common one."""
        _, _, f1 = self._scores()
        occurring = self.matrix.sum(axis=0) + self.matrix.sum(axis=1) > 0
        return float(f1[occurring].mean()) if occurring.any() else 0.0

    def per_label(self) -> list[LabelScore]:
        precision, recall, f1 = self._scores()
        rows = self.matrix.sum(axis=1)
        return [
            LabelScore(label, float(precision[i]), float(recall[i]), float(f1[i]), int(rows[i]))
            for i, label in enumerate(self.labels)
        ]

    def worst(self, most: int = 5) -> list[tuple[str, str, int]]:
        """The most frequent mistakes: (label, answer, times)."""
        wrong = self.matrix.copy()
        np.fill_diagonal(wrong, 0)
        places = np.argsort(-wrong, axis=None, kind="stable")[:most]
        pairs = [np.unravel_index(place, wrong.shape) for place in places]
        return [(self.labels[i], self.labels[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]

    def _scores(self) -> tuple[Floats, Floats, Floats]:
        right = self.matrix.diagonal().astype(np.float64)
        answered, true = self.matrix.sum(axis=0), self.matrix.sum(axis=1)
        precision, recall = right / np.maximum(answered, 1), right / np.maximum(true, 1)
        return precision, recall, 2 * right / np.maximum(answered + true, 1)


def signature(confusion: Confusion, engine: str, precision: str = "") -> str:
    """What makes two accuracies comparable. Torch computes with the model's own precision."""
    engine = engine if engine == "torch" else f"{engine}|precision:{precision}"
    return f"rows:{confusion.rows}|labels:{len(confusion.labels)}|average:macro|temperature:card|engine:{engine}"


def softmax(logits: NDArray[Any], temperature: float = 1.0) -> Floats:
    """Probabilities of logits (…, C), which are divided by the temperature first."""
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    exps = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(exps / exps.sum(axis=-1, keepdims=True))


def fit_temperature(logits: NDArray[Any], truth: Ints) -> float:
    """The temperature with the lowest log-loss of the truth (Guo et al. 2017): it changes no answer.

    The log-loss is convex in 1 / temperature, so a golden-section search finds it. Answers that are all right would
    have a temperature of 0: bounds keep it sensible.
    """
    low, high, golden = np.log(0.05), np.log(20.0), (5**0.5 - 1) / 2

    def loss(log_temperature: float) -> float:
        return log_loss(logits, truth, float(np.exp(log_temperature)))

    left, right = high - golden * (high - low), low + golden * (high - low)
    losses = loss(left), loss(right)
    for _ in range(40):
        if losses[0] < losses[1]:
            high, right = right, left
            left = high - golden * (high - low)
            losses = loss(left), losses[0]
        else:
            low, left = left, right
            right = low + golden * (high - low)
            losses = losses[1], loss(right)
    return float(np.exp((low + high) / 2))


def log_loss(logits: NDArray[Any], truth: Ints, temperature: float = 1.0) -> float:
    """The mean of -log P(truth)."""
    picked = softmax(logits, temperature)[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(picked, 1e-300)).mean())


def calibration_error(probabilities: Floats, truth: Ints) -> float:
    """The expected calibration error: how far the probability of the answers is from the share that is right."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.minimum((sure * _BINS).astype(np.int64), _BINS - 1)
    gaps = [abs(sure[bins == one].sum() - right[bins == one].sum()) for one in range(_BINS)]
    return float(sum(gaps)) / max(len(truth), 1)
