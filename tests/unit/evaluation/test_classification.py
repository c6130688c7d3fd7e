from __future__ import annotations

import numpy as np
import pytest

from headwise.evaluation.classification import (
    Confusion,
    calibration_error,
    fit_temperature,
    log_loss,
    signature,
    softmax,
)

LABELS = ("a", "b", "c")


def test_scores_are_those_of_a_table_worked_by_hand() -> None:
    truth, answers = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 0])
    found = Confusion.of(LABELS, truth, answers)
    assert found.matrix.tolist() == [[2, 1, 0], [0, 2, 0], [1, 0, 0]]
    assert found.accuracy == pytest.approx(4 / 6)
    assert [one.precision for one in found.per_label()] == pytest.approx([2 / 3, 2 / 3, 0])
    assert [one.recall for one in found.per_label()] == pytest.approx([2 / 3, 1, 0])
    assert [one.f1 for one in found.per_label()] == pytest.approx([2 / 3, 4 / 5, 0])
    assert found.macro_f1 == pytest.approx((2 / 3 + 4 / 5) / 3)
    assert found.worst() == [("a", "b", 1), ("c", "a", 1)]
    assert signature(found, "torch") == "rows:6|labels:3|average:macro|temperature:card|engine:torch"


def test_scores_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    chance = np.random.default_rng(1)
    truth, answers = chance.integers(0, 5, 200), chance.integers(0, 6, 200)
    found = Confusion.of(tuple("abcdefg"), truth, answers)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, answers))
    assert found.macro_f1 == pytest.approx(metrics.f1_score(truth, answers, average="macro"))


def test_a_label_that_does_not_occur_does_not_lower_the_mean() -> None:
    found = Confusion.of(LABELS, np.array([0, 1]), np.array([0, 1]))
    assert (found.accuracy, found.macro_f1) == (1, 1)
    assert Confusion.of(LABELS, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).macro_f1 == 0


@pytest.mark.parametrize("true_temperature", [0.5, 1.0, 3.0])
def test_the_fitted_temperature_is_the_one_that_the_answers_were_drawn_with(true_temperature: float) -> None:
    chance = np.random.default_rng(2)
    logits = chance.normal(size=(20_000, 4)) * 2
    cumulated = softmax(logits, true_temperature).cumsum(axis=1)
    truth = (chance.random((len(logits), 1)) > cumulated).sum(axis=1)
    found = fit_temperature(logits, truth)
    assert found == pytest.approx(true_temperature, rel=0.05)
    assert log_loss(logits, truth, found) <= log_loss(logits, truth, true_temperature) + 1e-9
    assert calibration_error(softmax(logits, found), truth) < 0.02


def test_a_classifier_that_is_always_right_keeps_a_sensible_temperature() -> None:
    logits = np.eye(3) * 4
    assert 0.04 < fit_temperature(logits, np.arange(3)) < 1


def test_calibration_error_is_the_distance_of_belief_from_truth() -> None:
    probabilities = np.array([[0.9, 0.1]] * 10)
    truth = np.array([0] * 5 + [1] * 5)
    assert calibration_error(probabilities, truth) == pytest.approx(0.4)


def test_softmax_survives_large_logits() -> None:
    assert softmax(np.array([[1e4, 0.0, -1e4]])).tolist() == [[1, 0, 0]]
