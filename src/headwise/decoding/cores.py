"""Work on several cores, one thread and one core for each piece.

Steps of decoding are small operations. A team of threads within each of them waits at its end for the slowest, so
batches side by side are faster, and far less disturbed by other programs (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[Result]:
    """work(job) for each, in order; `workers` of them are under way at once."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(workers, "headwise-decoding", initializer=_keep_to_one_core)
    try:
        yield from pool.map(work, jobs)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # what a worker sets becomes the default of later threads


@contextmanager
def one_core() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _keep_to_one_core() -> None:
    torch.set_num_threads(1)
