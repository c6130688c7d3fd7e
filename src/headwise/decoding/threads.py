"""Decodes several batches in parallel, each in one thread on one core.

A decoding step is a sequence of small operations. Splitting each of them over several threads makes all of them wait
for the slowest at every operation; decoding whole batches in parallel is faster (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from typing import TypeVar

import torch
from torch import nn

# A single batch is decoded on one core, unless the model has so many weights that a step is bound by memory.
_WEIGHTS_FOR_SEVERAL_CORES = 8_000_000

Job = TypeVar("Job")
Result = TypeVar("Result")


def is_small(model: nn.Module) -> bool:
    """Whether a step on one core is as fast as on several."""
    return sum(parameter.numel() for parameter in model.parameters()) < _WEIGHTS_FOR_SEVERAL_CORES


def side_by_side(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[Result]:
    """Yields work(job) for each job, in order; `workers` of them run at once."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(workers, "headwise-decoding", initializer=_keep_to_one_core)
    try:
        # Each job runs in a copy of the caller's context, so that it can be cancelled like the caller.
        yield from pool.map(lambda job, context: context.run(work, job), jobs, [copy_context() for _ in jobs])
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # torch makes a worker's setting the default of later threads


class Team:
    """Runs jobs on a fixed pool; team(work, jobs) blocks until all finish.

    With a size of 1, jobs run in the calling thread, on one core if the model is small.
    """

    def __init__(self, size: int, *, small: bool) -> None:
        self._before = torch.get_num_threads()
        self._alone = one_core if small and self._before > 1 else nullcontext
        self._pool = ThreadPoolExecutor(size, "headwise-writing", initializer=_keep_to_one_core) if size > 1 else None

    def __call__(self, work: Callable[[Job], None], jobs: Sequence[Job]) -> None:
        if self._pool is None:
            with self._alone():
                for job in jobs:
                    work(job)
        else:
            for _ in self._pool.map(work, jobs):
                pass

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            torch.set_num_threads(self._before)


@contextmanager
def one_core() -> Iterator[None]:
    """Limits torch to one thread within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _keep_to_one_core() -> None:
    torch.set_num_threads(1)
