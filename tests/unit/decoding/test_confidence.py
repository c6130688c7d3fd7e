from __future__ import annotations

import json
import math
import random

import pytest

from headwise.decoding.confidence import calibration_error, confidence, fit_calibration
from headwise.errors import UsageError


def sentences(count: int, seed: int) -> tuple[list[float], list[float]]:
    """A model that is much too sure: quality is half of what its probabilities say, with noise."""
    chance = random.Random(seed)
    means = [-chance.expovariate(2.0) for _ in range(count)]
    return means, [min(1.0, max(0.0, 0.5 * math.exp(mean) + chance.gauss(0, 0.1))) for mean in means]


def test_without_a_calibration_it_is_the_geometric_mean_of_token_probabilities() -> None:
    assert confidence(math.log(0.25)) == pytest.approx(0.25)
    assert confidence(0.0) == 1.0
    assert confidence(-1e9) == 0.0


def test_with_a_calibration_it_is_the_quality_that_such_sentences_have() -> None:
    calibration = fit_calibration(*sentences(500, seed=1))
    means, qualities = sentences(500, seed=2)
    assert calibration_error([confidence(mean) for mean in means], qualities) > 0.2
    assert calibration_error([confidence(mean, calibration) for mean in means], qualities) < 0.05


def test_a_surer_model_never_has_a_lower_confidence_and_all_lie_between_0_and_1() -> None:
    calibration = fit_calibration(*sentences(200, seed=3))
    values = [confidence(-step / 10, calibration) for step in range(200)]
    assert values == sorted(values, reverse=True)
    assert all(0.0 <= value <= 1.0 for value in values)


def test_a_calibration_is_small_and_can_be_kept_in_a_card() -> None:
    calibration = fit_calibration(*sentences(1000, seed=4), measure="chrF / 100")
    again = json.loads(json.dumps(calibration))
    assert len(json.dumps(calibration)) < 1500
    assert (again["measure"], again["sentences"]) == ("chrF / 100", 1000)
    assert confidence(-0.3, again) == confidence(-0.3, calibration)


def test_few_sentences_still_give_a_calibration() -> None:
    assert 0.0 <= confidence(-1.0, fit_calibration([-0.5], [0.4])) <= 1.0


def test_a_quality_is_needed_for_each_sentence() -> None:
    with pytest.raises(UsageError, match="2 for 1"):
        fit_calibration([-0.5], [0.4, 0.5])
