from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from fixtures_models import small_transformer

from headwise.decoding.threads import Team, is_small, one_core, side_by_side


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2, "what was set for the search is still set"
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_jobs_and_each_job_has_one_core() -> None:
    def work(job: int) -> tuple[int, int]:
        return job * job, torch.get_num_threads()

    assert list(side_by_side(work, range(7), workers=3)) == [(job * job, 1) for job in range(7)]


def test_an_error_in_a_job_comes_out() -> None:
    def fail(job: int) -> int:
        raise ValueError(f"job {job}")

    with pytest.raises(ValueError, match="job 0"):
        list(side_by_side(fail, range(3), workers=2))


@pytest.mark.parametrize("size", [1, 3])
def test_a_team_blocks_until_all_jobs_are_done(size: int) -> None:
    done: list[int] = []
    threads = set()

    def work(job: int) -> None:
        threads.add(threading.get_ident())
        assert torch.get_num_threads() == 1
        done.append(job)

    with Team(size, small=True) as team:
        for _ in range(2):
            team(work, range(5))
    assert sorted(done) == sorted([*range(5)] * 2)
    assert (threads == {threading.get_ident()}) == (size == 1)


def test_one_core_is_for_its_block_only_and_small_models_gain_from_it() -> None:
    with one_core():
        assert torch.get_num_threads() == 1
    assert is_small(small_transformer(50))
    assert not is_small(torch.nn.Linear(3000, 3000))
