from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from headwise.training.signals import SIGNALS, exit_code, stop_on_signal


class Asked:
    """What is asked of a trainer."""

    def __init__(self) -> None:
        self.signals: list[str] = []

    def ask_to_stop(self, name: str) -> None:
        self.signals.append(name)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_the_run_to_stop_and_the_second_leaves_at_once(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    trainer: Any = Asked()
    before = signal.getsignal(number)
    with stop_on_signal(trainer):
        signal.raise_signal(number)
        assert (trainer.signals, left) == ([number.name], [])
        signal.raise_signal(number)
        assert left == [128 + number]
    assert signal.getsignal(number) is before


def test_exit_codes_are_those_of_a_shell() -> None:
    assert [exit_code(reason) for reason in ("SIGINT", "SIGTERM", "steps", "patience")] == [130, 143, 0, 0]
