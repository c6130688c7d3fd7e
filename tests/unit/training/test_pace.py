"""A machine that becomes slower is told about, once per slowdown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwise.training.pace import UPDATES, Pace


def told(seconds: list[float], total: int | None) -> list[str]:
    records: list[dict[str, Any]] = []
    trainer: Any = SimpleNamespace(step=0, took=0.0, total_steps=total, emit=records.append)
    pace = Pace()
    for took in seconds:
        trainer.step, trainer.took = trainer.step + 1, took
        pace.after_update(trainer, None, None)  # type: ignore[arg-type]
    assert all(record["event"] == "slow" for record in records)
    return [record["message"] for record in records]


def test_a_slowdown_is_told_once_with_the_time_that_is_left() -> None:
    (message,) = told([0.1] * 2 * UPDATES + [0.3] * 4 * UPDATES, total=10 * UPDATES)
    assert message.startswith(
        "the machine has become slower: 0.30 s per update, 0.10 s at first; at this pace it takes"
    )


def test_a_second_slowdown_is_told_again() -> None:
    assert len(told([0.1] * UPDATES + [0.3] * 2 * UPDATES + [0.9] * 2 * UPDATES, total=None)) == 2


def test_a_steady_machine_or_a_single_slow_update_is_not_mentioned() -> None:
    assert told([0.1, 0.12] * 3 * UPDATES, total=None) == []
    assert told([0.1] * 2 * UPDATES + [60.0] + [0.1] * UPDATES, total=None) == []
