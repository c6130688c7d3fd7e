"""A server that is used for a long time answers as it did at first, and its memory does not grow."""

from __future__ import annotations

import asyncio
import statistics
from pathlib import Path

import pytest
from counts import SOAK_CLIENTS, SOAK_SECONDS
from running import serving
from soak import Soaked, soak

MB = 2**20


def run_soak(language_model: Path, clients: int, seconds: float, pause: float) -> Soaked:
    named = ("--model", "multi30k-en-de", "--model", f"letters={language_model}")
    with serving(*named, "--quiet", "--timeout", 600) as running:  # a busy machine is no failure
        seen = asyncio.run(soak(running.port, clients, seconds, pause, running.memory))
        assert running.ask("GET", "/health/ready").status == 200
        assert running.stop() == 0
    return seen


def check_answers(seen: Soaked) -> None:
    assert seen.bad() == {}
    assert seen.changed == []


def test_sixteen_clients_get_the_same_answers_again_and_again(language_model: Path) -> None:
    seen = run_soak(language_model, 16, seconds=5, pause=0.05)
    check_answers(seen)
    assert sum(seen.statuses.values()) >= 16


@pytest.mark.slow
def test_memory_stays_flat_in_a_long_soak(language_model: Path) -> None:
    seen = run_soak(language_model, SOAK_CLIENTS, SOAK_SECONDS, pause=1.5)
    part = len(seen.memory) // 10
    # After the first tenth: every path has been taken, and allocators hold what they reuse.
    start, middle, end = (
        statistics.median(seen.memory[first : first + part]) / MB
        for first in (part, len(seen.memory) // 2, len(seen.memory) - part)
    )
    print(
        f"\n{sum(seen.statuses.values())} requests of {SOAK_CLIENTS} clients in {SOAK_SECONDS} s: {dict(seen.statuses)}"
    )
    print(f"memory: {seen.memory[0] / MB:.0f} MB at first, {start:.0f} after a tenth, {middle:.0f} in the middle, ")
    print(f"{end:.0f} MB at the end; each sample: {[round(size / MB) for size in seen.memory]}")
    check_answers(seen)
    assert end <= middle * 1.03 + 8, f"memory grew from {middle:.0f} to {end:.0f} MB in the second half"
