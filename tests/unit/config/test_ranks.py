"""Which process of how many this is."""

from __future__ import annotations

import pytest

from headwise.config.ranks import Ranks
from headwise.errors import UsageError

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_a_process_that_nothing_is_said_to_is_alone_and_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Ranks.of_environment() == Ranks(rank=0, size=1, local_rank=0, local_size=1, restarts=0)
    assert Ranks.of_environment().leads
    monkeypatch.setenv("RANK", "3")  # not torchrun's: it says how many there are, too
    assert Ranks.of_environment().size == 1


def test_what_torchrun_says_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(NAMES, ("5", "8", "1", "4", "2"), strict=True):
        monkeypatch.setenv(name, value)
    assert Ranks.of_environment() == Ranks(rank=5, size=8, local_rank=1, local_size=4, restarts=2)
    assert not Ranks.of_environment().leads


def test_an_environment_that_makes_no_sense_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match=r"RANK=first.*torchrun"):
        Ranks.of_environment()
