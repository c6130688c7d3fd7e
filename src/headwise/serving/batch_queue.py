"""A bounded queue in front of an engine, and the threads that process it in batches, turn by turn.

A request is split into jobs (sentences). A free thread takes the request whose turn it is and, in the same batch, jobs
of equal work and similar size of others. An idle model starts at once; while it is at work, a job waits at most a few
milliseconds for others to share its batch.

Work calls `check_cancelled` as it goes. There it ends if all its clients have left, and pauses after TURN seconds if
other requests wait, until its turn comes again. So no request holds up the others, and none is held up forever. A call
that shows no sign of life for far longer than such calls usually need counts as stuck.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwise.cancellation import Cancelled, cancellable
from headwise.errors import HeadwiseError
from headwise.serving.jobs import Call, Job, Pace, QueuedRequest, Work, pick_batch
from headwise.serving.limits import Limits

TURN = 0.1  # seconds of work after which a call lets others go first
MOST_PAUSED = 8  # calls per queue: each has a thread and holds memory
# A call is stuck when it shows no sign of life for longer than STUCK_SECONDS and STUCK_TIMES as long as calls of its
# size usually do. The first call of a queue may have to load libraries and weights, which takes up to FIRST_SECONDS.
STUCK_SECONDS, STUCK_TIMES, FIRST_SECONDS = 1.25, 8.0, 60.0


class QueueFull(HeadwiseError):
    """Raised when a queue takes no more requests for now."""


class ShuttingDown(HeadwiseError):
    """Raised for requests that arrive, or are still unfinished, when the server shuts down."""


Observer = Callable[[int, float], None]  # called after each batch with its number of jobs and its seconds


@dataclass(eq=False)
class BatchQueue:
    """Runs work on `workers` threads at a time; accepts no more than `limits.queue` requests at a time."""

    name: str
    workers: int
    limits: Limits
    observer: Observer = lambda jobs, seconds: None
    loads: bool = False  # the next call is the first, loads what it needs, and may take long
    requests: int = 0  # accepted and not yet answered
    _waiting: list[QueuedRequest | Call] = field(default_factory=list)  # requests with jobs left, and paused calls
    _calls: list[Call] = field(default_factory=list)  # at work or paused
    _threads: list[threading.Thread] = field(default_factory=list)
    _idle: int = 0  # threads
    _loop: asyncio.AbstractEventLoop | None = None
    _closed: bool = False

    def __post_init__(self) -> None:
        self._ready = threading.Condition()
        self._pace, self._silence = Pace(), Pace()  # of whole calls; of the longest time between two checks

    # ---- the event loop's side

    async def submit(
        self, work: Work, items: Sequence[Any], sizes: Sequence[int], *, urgent: bool = False
    ) -> list[Any]:
        """Returns the answers, in order. If cancelled, jobs are not begun, and those at work are stopped.

        An urgent request goes first and is accepted even if the queue is full.
        """
        if self._closed:
            raise ShuttingDown("the server is shutting down")
        if not items:
            return []
        if not urgent:
            self.check_room()
        self.requests += not urgent
        now = time.monotonic()
        answer: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        request = QueuedRequest(answer, [None] * len(items), now, 0.0 if urgent else now, left=len(items))
        for index, (item, size) in enumerate(zip(items, sizes, strict=True)):
            request.jobs.append(Job(request, index, work, item, size))
        try:
            with self._ready:
                self._loop = asyncio.get_running_loop()
                self._waiting.append(request)
                while len(self._threads) < self.workers:
                    self._start_thread()
                self._ready.notify_all()
            return await answer
        finally:
            self.requests -= not urgent
            if request.left:
                with self._ready:
                    request.abandoned = True
                    self._ready.notify_all()  # a paused call may have lost its last client

    def check_room(self) -> None:
        """Raises QueueFull if no further request is accepted."""
        if self.full:
            raise QueueFull(f"{self.name} is busy: {self.requests} requests are waiting; try again in a moment")

    @property
    def full(self) -> bool:
        return self.requests >= self.limits.queue

    def is_stuck(self, probe: Work) -> bool:
        """Tells whether the probe, or every thread that may work, shows no sign of life."""
        working = [call for call in list(self._calls) if not call.paused]
        stuck = [call for call in working if self._is_stuck(call)]
        return len(stuck) >= self.workers or any(call.jobs[0].work == probe for call in stuck)

    @property
    def used(self) -> bool:
        """Tells whether it has ever had a request."""
        return bool(self._threads)

    @property
    def active(self) -> int:
        """Counts the jobs that are being processed, not those of paused calls."""
        return sum(len(call.jobs) for call in list(self._calls) if not call.paused)

    def close(self) -> None:
        """Accepts no more requests, stops the work, and ends requests without an answer with ShuttingDown."""
        with self._ready:
            self._closed = True
            jobs = [job for entry in (*self._waiting, *self._calls) for job in entry.jobs]
            for job in jobs:
                job.request.abandoned = True
            self._waiting.clear()
            self._ready.notify_all()
        for job in jobs:
            self._fail(job, ShuttingDown("the server is shutting down; this request was not finished"))

    def join(self, deadline: float) -> bool:
        """Waits for the threads of a closed queue until the deadline; tells whether all have ended."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _deliver(self, jobs: Sequence[Job], results: Sequence[Any]) -> None:
        for job, result in zip(jobs, results, strict=True):
            request = job.request
            if isinstance(result, BaseException):
                self._fail(job, result)
                continue
            request.results[job.index] = result
            request.left -= 1
            if not request.left and not request.answer.done():
                request.answer.set_result(request.results)

    def _fail(self, job: Job, error: BaseException) -> None:
        if not job.request.answer.done():
            job.request.answer.set_exception(error)

    # ---- the threads' side

    def _start_thread(self) -> None:
        name = f"{self.name}-{len(self._threads)}"
        self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
        self._idle += 1
        self._threads[-1].start()

    def _work(self) -> None:
        loop = self._loop
        assert loop is not None
        while (call := self._take()) is not None:
            results = self._answers(call.jobs, call)
            with self._ready:
                call.end()
                self._calls.remove(call)
                self._idle += 1
                self._note(call, results)
                self._ready.notify_all()
            try:
                loop.call_soon_threadsafe(self._deliver, call.jobs, results)
                loop.call_soon_threadsafe(self.observer, len(call.jobs), call.seconds)
            except RuntimeError:  # the event loop is closed: there is no one to answer
                return

    def _note(self, call: Call, results: Sequence[Any]) -> None:
        """Remembers how long a call took, unless it was cut short or had to load something."""
        if not self.loads and not any(isinstance(result, Cancelled) for result in results):
            self._pace.note(call.seconds, call.size)
            self._silence.note(call.longest, call.size)
        self.loads = False

    def _answers(self, jobs: list[Job], call: Call) -> Sequence[Any]:
        try:
            with cancellable(lambda: self._check(call)):
                return jobs[0].work.run([job.item for job in jobs])
        except Cancelled as error:
            return [error] * len(jobs)
        except Exception as error:
            if len(jobs) == 1:
                return [error]
        # One item failed the whole batch: run each alone, so that only its own request fails.
        return [answer for job in jobs for answer in self._answers([job], call)]

    def _take(self) -> Call | None:
        """Waits for the next batch; returns None when the queue is closed."""
        with self._ready:
            while not self._closed:
                head = self._head()
                if not isinstance(head, QueuedRequest) or not self._has_free():
                    self._ready.wait()
                    continue
                seconds = self._time_to_wait(head)
                if seconds > 0:
                    self._ready.wait(seconds)
                    continue
                requests = [entry for entry in self._waiting if isinstance(entry, QueuedRequest)]
                call = Call(pick_batch(requests, self.limits.batch, self._pace))
                self._waiting = [entry for entry in self._waiting if entry.jobs]
                self._calls.append(call)
                self._idle -= 1
                self._ready.notify_all()
                return call
            return None

    def _check(self, call: Call) -> None:
        """Is called by the work itself, between two steps."""
        seconds = call.check()
        if call.abandoned:
            raise Cancelled
        if seconds > TURN and self._waiting:
            self._let_others_go_first(call)

    def _let_others_go_first(self, call: Call) -> None:
        """Pauses the call until its turn comes again. Several threads may work for it; they pause together."""
        with self._ready:
            while call.paused:  # another of its threads has let go of its turn
                if call.abandoned:
                    raise Cancelled
                self._ready.wait()
            if not self._idle and len(self._threads) < self.workers + MOST_PAUSED:
                self._start_thread()
            if self._has_free() or all(call.serves(entry) for entry in self._able()):
                return
            call.pause()
            self._waiting.append(call)
            self._ready.notify_all()
            while not (self._head() is call and self._has_free()):
                if call.abandoned:
                    raise Cancelled
                self._ready.wait()
            self._waiting.remove(call)
            call.resume()
            self._ready.notify_all()

    def _head(self) -> QueuedRequest | Call | None:
        """Returns the request or paused call whose turn it is."""
        return min(self._able(), key=lambda entry: entry.turn, default=None)

    def _able(self) -> list[QueuedRequest | Call]:
        """Lists those that could go on. A request needs an idle thread; a paused call has its own."""
        self._waiting = [entry for entry in self._waiting if not entry.abandoned]
        return [entry for entry in self._waiting if self._idle or isinstance(entry, Call)]

    def _has_free(self) -> bool:
        return sum(not call.paused for call in self._calls) < self.workers

    def _time_to_wait(self, head: QueuedRequest) -> float:
        """Returns the seconds that the first request still waits for others to share its batch."""
        if not self._calls or not head.turn:
            return 0.0
        if sum(len(entry.jobs) for entry in self._waiting if not isinstance(entry, Call)) >= self.limits.batch:
            return 0.0
        return head.arrived + self.limits.delay - time.monotonic()

    def _is_stuck(self, call: Call) -> bool:
        expected = STUCK_TIMES * self._silence.seconds * call.size
        if self.loads:
            expected = FIRST_SECONDS
        return time.monotonic() - call.checked > max(STUCK_SECONDS, expected)
