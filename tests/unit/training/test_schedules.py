from __future__ import annotations

import math

import pytest

from headwise.config.schema import Training
from headwise.errors import RecipeError
from headwise.training.schedules import build_schedule, constant, cosine, inverse_sqrt, linear, noam


def test_the_papers_rate_peaks_at_the_end_of_warm_up() -> None:
    rates = {step: noam(step, 512, 4000) for step in (1, 3999, 4000, 4001, 100_000)}
    assert f"{rates[4000]:.4e}" == "6.9877e-04"
    assert rates[3999] < rates[4000] > rates[4001] > rates[100_000]
    assert rates[1] == pytest.approx(rates[4000] / 4000)
    assert rates[100_000] == pytest.approx(512**-0.5 * 100_000**-0.5)


def test_every_schedule_warms_up_linearly_to_its_peak() -> None:
    for schedule in (
        lambda step: inverse_sqrt(step, 0.5, 10),
        lambda step: cosine(step, 0.5, 10, 100),
        lambda step: linear(step, 0.5, 10, 100),
        lambda step: constant(step, 0.5, 10),
    ):
        assert [schedule(step) for step in (1, 5, 10)] == pytest.approx([0.05, 0.25, 0.5])


def test_warm_up_may_be_a_share_of_all_updates() -> None:
    share = Training.model_validate({"schedule": "cosine", "learning_rate": 0.5, "warmup": 0.1})
    number = Training.model_validate({"schedule": "cosine", "learning_rate": 0.5, "warmup": 30})
    assert [build_schedule(share, 8, 300)(n) for n in range(1, 301)] == [
        build_schedule(number, 8, 300)(n) for n in range(1, 301)
    ]
    assert number.warmup == 30
    with pytest.raises(RecipeError, match="a share of all updates"):
        build_schedule(Training.model_validate({"warmup": 0.1}), 8, None)
    with pytest.raises(ValueError, match="a whole number of updates, or a share below 1"):
        Training.model_validate({"warmup": 1.5})


def test_schedules_end_where_they_should() -> None:
    assert cosine(55, 1.0, 10, 100) == pytest.approx(0.5)
    assert cosine(100, 1.0, 10, 100, 0.1) == pytest.approx(0.1)
    assert linear(55, 1.0, 10, 100) == pytest.approx(0.5)
    assert linear(100, 1.0, 10, 100, 0.1) == pytest.approx(0.1)
    assert linear(150, 1.0, 10, 100, 0.1) == pytest.approx(0.1)
    assert inverse_sqrt(40, 1.0, 10) == pytest.approx(0.5)
    assert constant(1000, 0.3, 0) == 0.3


@pytest.mark.parametrize("name", ["noam", "cosine", "inverse-sqrt", "linear", "constant"])
@pytest.mark.parametrize("warmup", [0, 7])
def test_every_schedule_of_a_recipe_is_finite_and_not_negative(name: str, warmup: int) -> None:
    schedule = build_schedule(Training(schedule=name, warmup=warmup, learning_rate=0.5), 64, 50)
    rates = [schedule(step) for step in range(1, 60)]
    assert all(math.isfinite(rate) and rate >= 0 for rate in rates)
    assert max(rates) > 0


def test_a_schedule_that_must_know_its_end_says_so() -> None:
    with pytest.raises(RecipeError, match=r"training\.steps or training\.epochs"):
        build_schedule(Training(schedule="cosine"), 64, None)
