"""Work on several cores, one thread and one core for each piece.

Steps of decoding are small operations. A team of threads within each of them waits at its end for the slowest, so
batches side by side are faster, and far less disturbed by other programs (docs/decisions/0008).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import torch
from torch import nn

# A single batch is decoded on one core, unless a step reads so many weights that memory is what it waits for.
_WEIGHTS_FOR_A_TEAM = 8_000_000

# Seconds until a thread that waits for Python's lock asks for it; by default a thousand times as long, in which one
# thread sorts out candidates while the core of another has nothing to do.
_TURN = 5e-6

Job = TypeVar("Job")
Result = TypeVar("Result")


def is_small(model: nn.Module) -> bool:
    """Whether a step on one core is as fast as on several."""
    return sum(parameter.numel() for parameter in model.parameters()) < _WEIGHTS_FOR_A_TEAM


def side_by_side(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[Result]:
    """work(job) for each, in order; `workers` of them are under way at once."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(workers, "headwise-decoding", initializer=_keep_to_one_core)
    try:
        with _short_turns:
            yield from pool.map(work, jobs)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # what a worker sets becomes the default of later threads


class _ShortTurns:
    """Within the block threads take turns at short notice. Blocks of several threads may overlap."""

    def __init__(self) -> None:
        self._lock, self._blocks, self._before = threading.Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(_TURN)
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                sys.setswitchinterval(self._before)


_short_turns = _ShortTurns()


class Team:
    """Work in turns: team(work, jobs) does all jobs, each always on the same number of cores, and returns when all are.

    One job is done in the calling thread, on one core if it is small; of several each has a core of its own.
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
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _keep_to_one_core() -> None:
    torch.set_num_threads(1)
