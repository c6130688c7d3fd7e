"""A bounded queue in front of an engine, and the threads that work on it.

A request is split into jobs (sentences). A free thread takes the job that has waited longest and, with it, others that
ask for the same work and are of like size. A model at rest starts at once; while it is at work, a job waits at most a
few milliseconds for company. Every thread's present call is watched: one that takes far longer than such calls do is
stuck.
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

# The n-th sentence of a long text stands in line as if it had arrived this much later: it does not hold up others.
SPACING = 0.01
# A batch is filled up to what can be decoded in about this time, so that nobody waits long for a turn; small ones are
# not made smaller, for they would only be slower.
BATCH_SECONDS, SMALL_BATCH = 0.5, 16
# A call is stuck when it takes longer than this, and several times as long as calls of its size do.
STUCK_SECONDS = 1.25
STUCK_TIMES = 8.0

Beat = Callable[[], None]


class Busy(HeadwiseError):
    """The queue is full; come again."""


class Closing(HeadwiseError):
    """The server is shutting down."""


class Work(Hashable, Protocol):
    """What is to be done with some items. Jobs of equal work may be done together."""

    def run(self, items: Sequence[Any], beat: Beat) -> Sequence[Any]:
        """An answer for each item. `beat` says that the work is getting on; it raises where nobody waits any more."""
        ...


class Abandoned(Exception):
    """Raised by `beat` inside of work that nobody waits for."""


@dataclass(eq=False)
class _Ticket:
    """A request in the eyes of the lane; touched by the event loop's thread only."""

    answer: asyncio.Future[list[Any]]
    results: list[Any]
    left: int


@dataclass(eq=False)
class _Job:
    ticket: _Ticket
    index: int
    work: Work
    item: Any
    size: int
    arrived: float
    abandoned: bool = False


@dataclass
class _Call:
    """What a thread is doing now."""

    jobs: list[_Job]
    size: int
    since: float  # when it began, or when it last showed a sign of life
    beats: int = 0


@dataclass
class _Pace:
    """Seconds that a unit of size takes: a running mean."""

    seconds: float = 0.0

    def note(self, seconds: float, size: int) -> None:
        new = seconds / max(1, size)
        self.seconds = new if not self.seconds else 0.9 * self.seconds + 0.1 * new

    def allows(self) -> float:
        """The size that is done in BATCH_SECONDS."""
        return BATCH_SECONDS / self.seconds if self.seconds else 0.0


Observer = Callable[[int, float], None]  # is told of each batch: how many jobs, how many seconds


@dataclass(eq=False)
class Lane:
    """`workers` threads, a queue, and no more than `limits.queue` requests in it."""

    name: str
    workers: int
    limits: Limits
    observer: Observer = lambda jobs, seconds: None
    requests: int = 0  # accepted and not answered
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

    async def do(self, work: Work, items: Sequence[Any], sizes: Sequence[int], *, urgent: bool = False) -> list[Any]:
        """The answers, in order. Cancelled, it takes back what has not begun. An urgent request passes the bound."""
        if self._closed:
            raise Closing("the server is shutting down")
        if not items:
            return []
        if not urgent and self.requests >= self.limits.queue:
            raise Busy(f"{self.name} is busy: {self.requests} requests are waiting; try again in a moment")
        self.requests += not urgent
        now = time.monotonic()
        ticket = _Ticket(asyncio.get_running_loop().create_future(), [None] * len(items), len(items))
        jobs = [
            _Job(ticket, index, work, item, size, now)
            for index, (item, size) in enumerate(zip(items, sizes, strict=True))
        ]
        self._start()
        try:
            with self._ready:
                for job in jobs:
                    turn = 0.0 if urgent else now + job.index * SPACING
                    heapq.heappush(self._waiting, (turn, next(self._numbers), job))
                self._ready.notify(min(len(jobs), self.workers))
            return await ticket.answer
        finally:
            self.requests -= not urgent
            if not ticket.answer.done() or ticket.answer.cancelled() or ticket.left:
                for job in jobs:
                    job.abandoned = True

    def trouble(self) -> str | None:
        """What is wrong with the lane, or None."""
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
        """Every thread is at work."""
        return len(self._calls) >= self.workers

    @property
    def active(self) -> int:
        """Jobs that are being worked on."""
        return sum(len(call.jobs) for call in list(self._calls.values()))

    def refuse(self) -> None:
        """Takes no more, and answers everyone who still waits with a refusal."""
        self._closed = True
        with self._ready:
            jobs = [job for _, _, job in self._waiting]
            self._waiting.clear()
            self._ready.notify_all()
        for job in [*jobs, *(job for call in list(self._calls.values()) for job in call.jobs)]:
            job.abandoned = True
            self._fail(job, Closing("the server is shutting down; this request was not finished"))

    def _start(self) -> None:
        if not self._threads:
            self._loop = asyncio.get_running_loop()
            for number in range(self.workers):
                thread = threading.Thread(target=self._work, args=(number,), name=f"{self.name}-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _deliver(self, jobs: Sequence[_Job], results: Sequence[Any]) -> None:
        for job, result in zip(jobs, results, strict=True):
            ticket = job.ticket
            if isinstance(result, BaseException):
                self._fail(job, result)
                continue
            ticket.results[job.index] = result
            ticket.left -= 1
            if not ticket.left and not ticket.answer.done():
                ticket.answer.set_result(ticket.results)

    def _fail(self, job: _Job, error: BaseException) -> None:
        if not job.ticket.answer.done():
            job.ticket.answer.set_exception(error)

    # ---- the threads' side

    def _work(self, number: int) -> None:
        loop = self._loop
        assert loop is not None
        while jobs := self._take(number):
            call, began = self._calls[number], time.monotonic()
            results = self._answers(jobs, call)
            took = time.monotonic() - began
            if not call.beats:  # else the first beat was measured
                self._pace.note(took, call.size)
            with self._ready:
                del self._calls[number]
                self._ready.notify()
            try:
                loop.call_soon_threadsafe(self._deliver, jobs, results)
                loop.call_soon_threadsafe(self.observer, len(jobs), took)
            except RuntimeError:  # the loop is closed: nobody is there to be told
                return

    def _answers(self, jobs: list[_Job], call: _Call) -> Sequence[Any]:
        def beat() -> None:
            now = time.monotonic()
            if not call.beats:
                self._pace.note(now - call.since, call.size)
            call.since, call.beats = now, call.beats + 1
            if all(job.abandoned for job in jobs):
                raise Abandoned

        try:
            return jobs[0].work.run([job.item for job in jobs], beat)
        except Exception as error:
            if len(jobs) == 1:
                return [error]
        # One of them is to blame, and only that one is to suffer for it.
        return [answer for job in jobs for answer in self._answers([job], call)]

    def _take(self, number: int) -> list[_Job]:
        """The next batch, once there is one; nothing when the lane is closed."""
        with self._ready:
            while not self._closed:
                self._forget_abandoned()
                if not self._waiting:
                    self._ready.wait()
                    continue
                patience = self._patience()
                if patience <= 0:
                    jobs = self._pick()
                    self._calls[number] = _Call(jobs, _padded(jobs), time.monotonic())
                    return jobs
                self._ready.wait(patience)
            return []

    def _forget_abandoned(self) -> None:
        while self._waiting and self._waiting[0][2].abandoned:
            heapq.heappop(self._waiting)

    def _patience(self) -> float:
        """Seconds that the first in line is still made to wait for others."""
        turn, _, lead = self._waiting[0]
        if not self._calls or len(self._waiting) >= self.limits.batch or not turn:
            return 0.0
        return lead.arrived + self.limits.delay - time.monotonic()

    def _pick(self) -> list[_Job]:
        """The first in line, and those of like size that ask for the same."""
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
