from __future__ import annotations

import pytest

from headwise.config.cores import decoding_cores, machine_cores, training_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_the_processes_of_a_machine_share_its_cores() -> None:
    assert [training_cores(processes=count) for count in (1, 2, 8, 16)] == [8, 4, 1, 1]
    assert training_cores(3, processes=8) == 3


def test_the_engines_have_what_the_environment_says_and_else_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decoding_cores() == machine_cores() == 8
    for told, cores in (("3", 3), ("0", 8), ("many", 8), ("", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        assert decoding_cores() == cores


def test_training_does_not_heed_what_torchrun_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert training_cores() == 8
