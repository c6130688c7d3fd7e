"""A bounded queue in front of an engine, and the threads that process it in batches.

A request is split into jobs (sentences). A free thread takes the job that has waited longest and, in the same batch,
jobs of equal work and similar size. An idle model starts at once; while it is at work, a job waits at most a few
milliseconds for others to share its batch. Every call is timed: one that takes far longer than calls of its size
usually do counts as stuck.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headwise.errors import HeadwiseError
from headwise.serving.limits import Limits

# Seconds by which each further sentence of a text is queued later than the one before, so that a long text does not
# hold up the requests of others.
SPACING = 0.01
# A batch is filled up to what can be decoded in about BATCH_SECONDS, so that no request waits long for its turn.
# Batches of up to SMALL_BATCH jobs are not split further: that would only be slower.
BATCH_SECONDS, SMALL_BATCH = 0.5, 16
# A call is stuck when it takes longer than STUCK_SECONDS and STUCK_TIMES as long as calls of its size usually do.
STUCK_SECONDS = 1.25
STUCK_TIMES = 8.0

Heartbeat = Callable[[], None]


class QueueFull(HeadwiseError):
    """Raised when a queue takes no more requests for now."""


class ShuttingDown(HeadwiseError):
    """Raised for requests that arrive, or are still unfinished, when the server shuts down."""


class Work(Hashable, Protocol):
    """Processes items. Jobs of equal work may share a batch."""

    def run(self, items: Sequence[Any], heartbeat: Heartbeat) -> Sequence[Any]:
        """Returns one answer per item. Calls `heartbeat` to show progress; it raises when no client waits any more."""
        ...


class Abandoned(Exception):
    """Raised by `heartbeat` when all clients of a batch have left."""


@dataclass(eq=False)
class _QueuedRequest:
    """Collects the answers to one request; touched by the event loop's thread only."""

    answer: asyncio.Future[list[Any]]
    results: list[Any]
    left: int


@dataclass(eq=False)
class _Job:
    request: _QueuedRequest
    index: int
    work: Work
    item: Any
    size: int
    arrived: float
    abandoned: bool = False


@dataclass
class _Call:
    """Describes what a thread is doing now."""

    jobs: list[_Job]
    size: int
    since: float  # when it began, or its last heartbeat
    heartbeats: int = 0


@dataclass
class _Pace:
    """Measures seconds per unit of size, as a running mean."""

    seconds: float = 0.0

    def note(self, seconds: float, size: int) -> None:
        new = seconds / max(1, size)
        self.seconds = new if not self.seconds else 0.9 * self.seconds + 0.1 * new

    def allows(self) -> float:
        """Returns the size that is processed in BATCH_SECONDS."""
        return BATCH_SECONDS / self.seconds if self.seconds else 0.0


Observer = Callable[[int, float], None]  # called after each batch with its number of jobs and its seconds


@dataclass(eq=False)
class BatchQueue:
    """Runs work on `workers` threads; accepts no more than `limits.queue` requests at a time."""

    name: str
    workers: int
    limits: Limits
    observer: Observer = lambda jobs, seconds: None
    requests: int = 0  # accepted and not yet answered
    _waiting: list[tuple[float, int, _Job]] = field(default_factory=list)
    _calls: dict[int, _Call] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop | None = None
    _closed: bool = False

    def __post_init__(self) -> None:
        self._ready = threading.Condition()
        self._numbers = itertools.count()
        self._pace = _Pace()

    # ---- the event loop's side

    async def submit(
        self, work: Work, items: Sequence[Any], sizes: Sequence[int], *, urgent: bool = False
    ) -> list[Any]:
        """Returns the answers, in order. If cancelled, jobs that have not begun are dropped.

        An urgent request goes first and is accepted even if the queue is full.
        """
        if self._closed:
            raise ShuttingDown("the server is shutting down")
        if not items:
            return []
        if not urgent and self.requests >= self.limits.queue:
            raise QueueFull(f"{self.name} is busy: {self.requests} requests are waiting; try again in a moment")
        self.requests += not urgent
        now = time.monotonic()
        request = _QueuedRequest(asyncio.get_running_loop().create_future(), [None] * len(items), len(items))
        jobs = [
            _Job(request, index, work, item, size, now)
            for index, (item, size) in enumerate(zip(items, sizes, strict=True))
        ]
        self._start()
        try:
            with self._ready:
                for job in jobs:
                    turn = 0.0 if urgent else now + job.index * SPACING
                    heapq.heappush(self._waiting, (turn, next(self._numbers), job))
                self._ready.notify(min(len(jobs), self.workers))
            return await request.answer
        finally:
            self.requests -= not urgent
            if not request.answer.done() or request.answer.cancelled() or request.left:
                for job in jobs:
                    job.abandoned = True

    def problem(self) -> str | None:
        """Says what is wrong with the threads; None: nothing."""
        now = time.monotonic()
        for call in list(self._calls.values()):
            expected = STUCK_TIMES * self._pace.seconds * call.size
            if now - call.since > max(STUCK_SECONDS, expected):
                return f"stuck for {now - call.since:.1f} seconds"
        if any(not thread.is_alive() for thread in self._threads) and not self._closed:
            return "a thread has died"
        return None

    @property
    def saturated(self) -> bool:
        """Tells whether every thread is at work."""
        return len(self._calls) >= self.workers

    @property
    def active(self) -> int:
        """Counts the jobs that are being processed."""
        return sum(len(call.jobs) for call in list(self._calls.values()))

    def close(self) -> None:
        """Accepts no more requests, and ends those that still wait with ShuttingDown."""
        self._closed = True
        with self._ready:
            jobs = [job for _, _, job in self._waiting]
            self._waiting.clear()
            self._ready.notify_all()
        for job in [*jobs, *(job for call in list(self._calls.values()) for job in call.jobs)]:
            job.abandoned = True
            self._fail(job, ShuttingDown("the server is shutting down; this request was not finished"))

    def _start(self) -> None:
        if not self._threads:
            self._loop = asyncio.get_running_loop()
            for number in range(self.workers):
                thread = threading.Thread(target=self._work, args=(number,), name=f"{self.name}-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _deliver(self, jobs: Sequence[_Job], results: Sequence[Any]) -> None:
        for job, result in zip(jobs, results, strict=True):
            request = job.request
            if isinstance(result, BaseException):
                self._fail(job, result)
                continue
            request.results[job.index] = result
            request.left -= 1
            if not request.left and not request.answer.done():
                request.answer.set_result(request.results)

    def _fail(self, job: _Job, error: BaseException) -> None:
        if not job.request.answer.done():
            job.request.answer.set_exception(error)

    # ---- the threads' side

    def _work(self, number: int) -> None:
        loop = self._loop
        assert loop is not None
        while jobs := self._take(number):
            call, began = self._calls[number], time.monotonic()
            results = self._answers(jobs, call)
            took = time.monotonic() - began
            if not call.heartbeats:  # else the time to the first heartbeat was noted
                self._pace.note(took, call.size)
            with self._ready:
                del self._calls[number]
                self._ready.notify()
            try:
                loop.call_soon_threadsafe(self._deliver, jobs, results)
                loop.call_soon_threadsafe(self.observer, len(jobs), took)
            except RuntimeError:  # the event loop is closed: there is no one to answer
                return

    def _answers(self, jobs: list[_Job], call: _Call) -> Sequence[Any]:
        def heartbeat() -> None:
            now = time.monotonic()
            if not call.heartbeats:
                self._pace.note(now - call.since, call.size)
            call.since, call.heartbeats = now, call.heartbeats + 1
            if all(job.abandoned for job in jobs):
                raise Abandoned

        try:
            return jobs[0].work.run([job.item for job in jobs], heartbeat)
        except Exception as error:
            if len(jobs) == 1:
                return [error]
        # One item failed the whole batch: run each alone, so that only its own request fails.
        return [answer for job in jobs for answer in self._answers([job], call)]

    def _take(self, number: int) -> list[_Job]:
        """Waits for the next batch; returns an empty one when the queue is closed."""
        with self._ready:
            while not self._closed:
                self._drop_abandoned()
                if not self._waiting:
                    self._ready.wait()
                    continue
                seconds = self._time_to_wait()
                if seconds <= 0:
                    jobs = self._pick()
                    self._calls[number] = _Call(jobs, _padded(jobs), time.monotonic())
                    return jobs
                self._ready.wait(seconds)
            return []

    def _drop_abandoned(self) -> None:
        while self._waiting and self._waiting[0][2].abandoned:
            heapq.heappop(self._waiting)

    def _time_to_wait(self) -> float:
        """Returns the seconds that the first job still waits for others to share its batch."""
        turn, _, lead = self._waiting[0]
        if not self._calls or len(self._waiting) >= self.limits.batch or not turn:
            return 0.0
        return lead.arrived + self.limits.delay - time.monotonic()

    def _pick(self) -> list[_Job]:
        """Takes the first job, and others of equal work and similar size."""
        lead = heapq.heappop(self._waiting)[2]
        seen = [heapq.heappop(self._waiting) for _ in range(min(len(self._waiting), 4 * self.limits.batch))]
        alike = [entry for entry in seen if entry[2].work == lead.work and not entry[2].abandoned]
        alike.sort(key=lambda entry: abs(entry[2].size - lead.size))
        room = max(self._pace.allows(), SMALL_BATCH * lead.size)
        jobs, longest = [lead], lead.size
        taken = set()
        for _, order, job in alike:
            longest = max(longest, job.size)
            if len(jobs) == self.limits.batch or longest * (len(jobs) + 1) > room:
                break
            jobs.append(job)
            taken.add(order)
        for entry in seen:
            if entry[1] not in taken and not entry[2].abandoned:
                heapq.heappush(self._waiting, entry)
        return jobs


def _padded(jobs: Sequence[_Job]) -> int:
    return max(job.size for job in jobs) * len(jobs)
