from __future__ import annotations

import pytest

from headwise.training.diagnostics import diverging, empty_outputs, far_above, not_falling, overfitting

FALLING = [6.0 / (1 + 0.1 * n) for n in range(30)]


def test_a_healthy_run_gets_no_warning() -> None:
    assert not_falling(FALLING) is None
    assert diverging(FALLING) is None
    assert overfitting([(3.0, 3.1), (2.5, 2.7), (2.0, 2.4), (1.8, 2.3), (1.6, 2.3)]) is None
    assert far_above([(3.0, 3.2), (2.0, 2.6)]) is None
    assert empty_outputs(0.02) is None


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        (not_falling([9.0] * 20), "learning rate"),
        (diverging([6.0, 4.0, 3.0, 2.5, 7.0, 8.0]), "clip_norm"),
        (overfitting([(2.0, 2.5), (1.5, 2.6), (1.0, 2.8), (0.7, 3.0)]), "dropout"),
        (far_above([(2.0, 5.0), (1.5, 5.0)]), "headwise check"),
        (empty_outputs(0.5), "50%"),
    ],
)
def test_a_run_that_goes_wrong_gets_a_warning_with_a_hint(message: str | None, hint: str) -> None:
    assert message is not None
    assert hint in message
    assert "\n" not in message


def test_warnings_wait_for_enough_evidence() -> None:
    assert not_falling([9.0] * 10) is None
    assert diverging([3.0, 9.0, 9.0]) is None
    assert overfitting([(2.0, 2.5), (1.5, 2.6)]) is None
