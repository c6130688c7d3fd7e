"""A run is called what it is: learned, still improving, overfitted, or a failure."""

from __future__ import annotations

from typing import Any

import pytest

from headwise.training.verdict import forecast, verdict


def records(training: list[float], validation: list[float]) -> list[dict[str, Any]]:
    steps = range(100, 100 * len(training) + 1, 100)
    told = [{"event": "train", "step": step, "log_loss": loss} for step, loss in zip(steps, training, strict=True)]
    checks = range(100, 100 * len(validation) + 1, 100)
    return told + [
        {"event": "validation", "step": step, "log_loss": loss} for step, loss in zip(checks, validation, strict=True)
    ]


@pytest.mark.parametrize(
    ("training", "validation", "said"),
    [
        ([8.0, 7.9], [7.95], "did not learn"),
        ([8.0, 3.0, 2.0], [5.0, 4.0, 3.0], "still improving"),
        ([8.0, 3.0, 1.0], [5.0, 4.0, 4.3, 4.6], "overfitted"),
        ([8.0, 3.0, 2.9], [5.0, 3.5, 3.49, 3.49], "levelled off"),
        ([8.0, 3.0], [], "it learned"),
        ([], [], "nothing was learned"),
    ],
)
def test_the_verdict_says_what_the_losses_say(training: list[float], validation: list[float], said: str) -> None:
    assert said in verdict(records(training, validation))


def test_a_run_that_cannot_learn_is_told_so_beforehand() -> None:
    assert "warm-up of 4,000" in str(forecast(27, 4000))
    assert "hardly learn" in str(forecast(27, 2))
    assert forecast(900, 90) is None
    assert forecast(None, 4000) is None
    assert forecast(27, 2, from_scratch=False) is None
