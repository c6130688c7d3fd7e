"""Handles Ctrl-C and SIGTERM: the run finishes its update, saves and exits. A second signal exits at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from headwise.training.loop import Trainer

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signal(trainer: Trainer) -> Iterator[None]:
    """Makes the first signal request a stop and the second exit at once, which is safe because saves are atomic."""

    asked: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(number)
        trainer.ask_to_stop(signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_code(reason: str) -> int:
    """Returns 130 for SIGINT, 143 for SIGTERM, 0 for a run that came to its end."""
    return 128 + signal.Signals[reason] if reason in {s.name for s in SIGNALS} else 0
