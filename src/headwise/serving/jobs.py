"""Requests in a queue, their jobs, and the calls of an engine that process jobs in batches."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

# A batch is filled up to what usually takes BATCH_SECONDS. Batches of up to SMALL_BATCH jobs are not split further:
# that would only be slower.
BATCH_SECONDS, SMALL_BATCH = 0.25, 8
# The largest size of a batch, whatever the usual time. Sizes count the decoding steps that a job may take at most,
# times its hypotheses; the fast engine cannot be interrupted within a batch, so this bounds the time that it takes.
MOST_STEPS = 3_200


class Work(Hashable, Protocol):
    """Processes items. Jobs of equal work may share a batch."""

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        """Returns one answer per item. Calls `check_cancelled` often: between these calls it cannot be stopped."""
        ...


@dataclass(eq=False)
class QueuedRequest:
    """A request and the answers to it so far."""

    answer: asyncio.Future[list[Any]]
    results: list[Any]
    arrived: float
    turn: float  # when it arrived or was served last, whichever is later: the smallest goes first
    jobs: deque[Job] = field(default_factory=deque)  # those that have not begun
    left: int = 0  # answers that are still missing
    abandoned: bool = False  # nobody waits for the answer


@dataclass(eq=False)
class Job:
    """One item of a request, such as a sentence."""

    request: QueuedRequest
    index: int
    work: Work
    item: Any
    size: int


@dataclass(eq=False)
class Call:
    """A batch that the engine processes."""

    jobs: list[Job]
    turn: float = 0.0  # when it was paused
    paused: bool = False
    began: float = field(default_factory=time.monotonic)  # or continued after a pause
    checked: float = field(default_factory=time.monotonic)  # when it last called `check_cancelled`
    seconds: float = 0.0  # at work, without pauses
    longest: float = 0.0  # seconds between two checks

    @property
    def size(self) -> int:
        """Its sentences are padded to the longest."""
        return max(job.size for job in self.jobs) * len(self.jobs)

    @property
    def abandoned(self) -> bool:
        return all(job.request.abandoned for job in self.jobs)

    def serves(self, other: QueuedRequest | Call) -> bool:
        """Tells whether all of the other's jobs are of requests that this call works for."""
        own = {id(job.request) for job in self.jobs}
        wanted = [job.request for job in other.jobs] if isinstance(other, Call) else [other]
        return all(id(request) in own for request in wanted)

    def check(self) -> float:
        """Notes a sign of life; returns the seconds since its turn began."""
        now = time.monotonic()
        self.longest = max(self.longest, now - self.checked)
        self.checked = now
        return now - self.began

    def pause(self) -> None:
        """Lets go of its turn; what waits of the same requests stands behind the others too."""
        self.turn, self.paused = self.checked, True
        self.seconds += self.checked - self.began
        for job in self.jobs:
            job.request.turn = self.checked

    def resume(self) -> None:
        self.paused = False
        self.began = self.checked = time.monotonic()

    def end(self) -> None:
        if not self.paused:
            self.check()
            self.seconds += self.checked - self.began


@dataclass
class Pace:
    """Measures seconds per unit of size, as a running mean; 0 before the first call."""

    seconds: float = 0.0

    def note(self, seconds: float, size: int) -> None:
        new = seconds / max(1, size)
        self.seconds = new if not self.seconds else 0.9 * self.seconds + 0.1 * new


def pick_batch(waiting: Sequence[QueuedRequest], most: int, pace: Pace) -> list[Job]:
    """Takes the first job of the request whose turn it is, and others of equal work and similar size.

    Jobs are taken in turn: the first of every request, then the second of every request, and so on.
    """
    order = sorted(waiting, key=lambda request: request.turn)
    lead = order[0].jobs[0]
    in_turn = sorted(
        ((place, job) for request in order for place, job in zip(range(most), request.jobs, strict=False)),
        key=lambda pair: pair[0],
    )[: 4 * most]
    alike = [job for _, job in in_turn if job is not lead and job.work == lead.work]
    alike.sort(key=lambda job: abs(job.size - lead.size))
    usual = BATCH_SECONDS / pace.seconds if pace.seconds else 0.0
    room = min(max(usual, SMALL_BATCH * lead.size), MOST_STEPS)
    chosen, longest = [lead], lead.size
    for job in alike:
        longest = max(longest, job.size)
        if len(chosen) == most or longest * (len(chosen) + 1) > room:
            break
        chosen.append(job)
    now = time.monotonic()
    for job in chosen:
        job.request.jobs.remove(job)
        job.request.turn = now
    return chosen
