"""Which jobs share a batch, in which order, and what happens to those of a client that has left."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from headwise.cancellation import Cancelled, check_cancelled
from headwise.serving import batch_queue
from headwise.serving.batch_queue import BatchQueue, QueueFull, ShuttingDown
from headwise.serving.jobs import QueuedRequest
from headwise.serving.limits import Limits


@dataclass(eq=False)
class Recorder:
    """Records its batches; blocks until `go` is set."""

    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    batches: list[list[Any]] = field(default_factory=list)

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        self.batches.append(list(items))
        self.begun.set()
        self.go.wait(10)
        if "bad" in items:
            raise ValueError("bad")
        return [f"{item}!" for item in items]


def make_queue(**changes: Any) -> BatchQueue:
    return BatchQueue("test", 1, Limits(**{"queue": 10, "delay": 0.0, **changes}))


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0)


def waiting(queue: BatchQueue) -> int:
    """Jobs that have not begun."""
    return sum(len(entry.jobs) for entry in list(queue._waiting) if isinstance(entry, QueuedRequest))


async def first(queue: BatchQueue, work: Recorder) -> asyncio.Task[list[Any]]:
    """A request that the only thread is busy with."""
    task = asyncio.create_task(queue.submit(work, ["first"], [5]))
    await until(work.begun.is_set)
    return task


def test_waiting_jobs_share_a_batch_and_are_answered_in_order() -> None:
    async def scene() -> None:
        queue, work = make_queue(), Recorder()
        one = await first(queue, work)
        others = [asyncio.create_task(queue.submit(work, [f"a{n}", f"b{n}"], [5, 5])) for n in range(3)]
        await until(lambda: waiting(queue) == 6)
        work.go.set()
        assert await one == ["first!"]
        assert await asyncio.gather(*others) == [[f"a{n}!", f"b{n}!"] for n in range(3)]
        # The second sentences stand behind the first ones of all others.
        assert work.batches[1] == ["a0", "a1", "a2", "b0", "b1", "b2"]

    asyncio.run(scene())


def test_only_jobs_of_similar_size_and_equal_work_share_a_batch() -> None:
    async def scene() -> None:
        queue, work, other = make_queue(batch=3), Recorder(), Recorder()
        other.go.set()
        one = await first(queue, work)
        sizes = {"short": 5, "long": 500, "also short": 6, "again": 7}
        tasks = [asyncio.create_task(queue.submit(work, [name], [size])) for name, size in sizes.items()]
        tasks.append(asyncio.create_task(queue.submit(other, ["else"], [5])))
        await until(lambda: waiting(queue) == 5)
        queue._pace.seconds = 1e-9  # room for any batch
        work.go.set()
        await asyncio.gather(one, *tasks)
        assert work.batches == [["first"], ["short", "also short", "again"], ["long"]]
        assert other.batches == [["else"]]

    asyncio.run(scene())


def test_one_bad_item_does_not_fail_the_rest_of_its_batch() -> None:
    async def scene() -> None:
        queue, work = make_queue(), Recorder()
        one = await first(queue, work)
        tasks = [asyncio.create_task(queue.submit(work, [name], [5])) for name in ("x", "bad", "y")]
        await until(lambda: waiting(queue) == 3)
        queue._pace.seconds = 1e-9
        work.go.set()
        await one
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert (results[0], results[2]) == (["x!"], ["y!"])
        assert isinstance(results[1], ValueError)
        assert ["x", "bad", "y"] in work.batches

    asyncio.run(scene())


def test_a_cancelled_request_is_not_begun_and_frees_its_place() -> None:
    async def scene() -> None:
        queue, work = make_queue(queue=2), Recorder()
        one = await first(queue, work)
        gone = asyncio.create_task(queue.submit(work, ["gone"], [5]))
        await until(lambda: queue.requests == 2)
        with pytest.raises(QueueFull):
            await queue.submit(work, ["too many"], [5])
        gone.cancel()
        await until(lambda: queue.requests == 1)
        work.go.set()
        await one
        assert await queue.submit(work, ["next"], [5]) == ["next!"]
        assert work.batches == [["first"], ["next"]]

    asyncio.run(scene())


def test_work_without_clients_is_stopped_at_its_next_step() -> None:
    beats, stopped = threading.Event(), threading.Event()

    @dataclass(eq=False)
    class Endless:
        def run(self, items: Sequence[Any]) -> Sequence[Any]:
            try:
                while True:
                    check_cancelled()
                    beats.set()
            except Cancelled:
                stopped.set()
                raise

    async def scene() -> None:
        queue = make_queue()
        task = asyncio.create_task(queue.submit(Endless(), [None], [1]))
        await until(beats.is_set)
        task.cancel()
        await until(stopped.is_set)
        await until(lambda: not queue.active)

    asyncio.run(scene())


def test_an_urgent_job_goes_first_even_if_the_queue_is_full() -> None:
    async def scene() -> None:
        queue, work, probe = make_queue(queue=2), Recorder(), Recorder()
        one = await first(queue, work)
        two = asyncio.create_task(queue.submit(work, ["second"], [5]))
        await until(lambda: waiting(queue) == 1)
        urgent = asyncio.create_task(queue.submit(probe, ["probe"], [1], urgent=True))
        await until(lambda: waiting(queue) == 2)
        probe.go.set()
        work.go.set()
        await urgent
        await asyncio.gather(one, two)
        assert probe.batches == [["probe"]]

    asyncio.run(scene())


def test_a_call_without_a_sign_of_life_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_queue, "STUCK_SECONDS", 0.0)

    async def scene() -> None:
        queue, work, probe = make_queue(), Recorder(), Recorder()
        one = await first(queue, work)
        assert queue.is_stuck(probe)
        queue._silence.seconds = 1e9  # such calls do take long
        assert not queue.is_stuck(probe)
        queue._silence.seconds, queue.loads = 0.0, True  # the first call may have to load something
        assert not queue.is_stuck(probe)
        work.go.set()
        await one
        assert (queue.loads, queue._silence.seconds) == (False, 0.0)  # the time that it took says nothing of others
        assert not queue.is_stuck(probe)

    asyncio.run(scene())


def test_a_queue_with_a_thread_left_can_answer_unless_the_probe_itself_is_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_queue, "STUCK_SECONDS", 0.0)

    async def scene() -> None:
        queue, work, probe = BatchQueue("test", 2, Limits(queue=10, delay=0.0)), Recorder(), Recorder()
        one = await first(queue, work)
        assert not queue.is_stuck(probe)
        two = asyncio.create_task(queue.submit(probe, [None], [1], urgent=True))
        await until(probe.begun.is_set)
        assert queue.is_stuck(probe)
        work.go.set()
        probe.go.set()
        await asyncio.gather(one, two)

    asyncio.run(scene())


def test_a_closed_queue_refuses_waiting_and_new_requests() -> None:
    async def scene() -> None:
        queue, work = make_queue(), Recorder()
        tasks = [await first(queue, work), asyncio.create_task(queue.submit(work, ["second"], [5]))]
        await until(lambda: waiting(queue) == 1)
        queue.close()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, ShuttingDown) for result in results)
        with pytest.raises(ShuttingDown):
            await queue.submit(work, ["late"], [5])
        work.go.set()

    asyncio.run(scene())


# ---- turns


@dataclass(eq=False)
class Stepper:
    """Takes some steps for each item; records whose step it was. Every step uses up a turn."""

    steps: int
    log: list[Any]
    begun: threading.Event = field(default_factory=threading.Event)

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        for _ in range(self.steps):
            check_cancelled()
            self.log.append(items[0])
            self.begun.set()
        return list(items)


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is as long as a turn."""
    monkeypatch.setattr(batch_queue, "TURN", 0.0)


@pytest.mark.usefixtures("no_time")
def test_long_work_lets_others_go_first_and_then_goes_on() -> None:
    async def scene() -> None:
        queue, log = make_queue(), list[Any]()
        endless = Stepper(10**9, log)
        long = asyncio.create_task(queue.submit(endless, ["long"], [1]))
        await until(endless.begun.is_set)
        assert await queue.submit(Stepper(3, log), ["short"], [1]) == ["short"]
        assert await queue.submit(Stepper(1, log), ["probe"], [1], urgent=True) == ["probe"]
        steps = len(log)
        await until(lambda: len(log) > steps)
        assert not long.done()
        long.cancel()
        await until(lambda: not queue._calls)

    asyncio.run(scene())


@pytest.mark.usefixtures("no_time")
def test_a_request_of_many_jobs_does_not_hold_up_one_that_comes_later() -> None:
    async def scene() -> None:
        queue, log = make_queue(), list[Any]()
        works = [Stepper(10**9, log) for _ in range(30)]
        # As works are not equal, every job is a batch of its own.
        many = [asyncio.create_task(queue.submit(work, ["many"], [1])) for work in works[:5]]
        much = asyncio.create_task(queue.submit(works[5], ["much"] * 30, [1] * 30))
        await until(works[0].begun.is_set)
        assert await queue.submit(Stepper(5, log), ["later"], [1]) == ["later"]
        for task in (*many, much):
            task.cancel()
        await until(lambda: not queue._calls)

    asyncio.run(scene())


@pytest.mark.usefixtures("no_time")
def test_paused_work_is_stopped_when_its_client_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        queue, log = make_queue(), list[Any]()
        endless, blocking = Stepper(10**9, log), Recorder()
        long = asyncio.create_task(queue.submit(endless, ["long"], [1]))
        await until(endless.begun.is_set)
        other = asyncio.create_task(queue.submit(blocking, ["other"], [1]))
        await until(blocking.begun.is_set)
        assert [call.paused for call in queue._calls] == [True, False]
        long.cancel()
        await until(lambda: len(queue._calls) == 1)  # although it is not its turn
        blocking.go.set()
        assert await other == ["other!"]

    asyncio.run(scene())


@pytest.mark.usefixtures("no_time")
def test_more_long_work_than_threads_is_done_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        queue, log = BatchQueue("test", 2, Limits(queue=100, delay=0.0)), list[Any]()
        tasks = [asyncio.create_task(queue.submit(Stepper(20, log), [n], [1])) for n in range(40)]
        assert await asyncio.gather(*tasks) == [[n] for n in range(40)]
        assert len(queue._threads) <= 2 + batch_queue.MOST_PAUSED
        assert (queue.requests, queue.active, queue._waiting) == (0, 0, [])
        queue.close()
        assert queue.join(time.monotonic() + 10)

    asyncio.run(scene())


@pytest.mark.usefixtures("no_time")
def test_work_in_two_threads_pauses_and_goes_on_as_one() -> None:
    @dataclass(eq=False)
    class Doubled:
        inner: Stepper

        def run(self, items: Sequence[Any]) -> Sequence[Any]:
            contexts = [contextvars.copy_context() for _ in range(2)]
            with ThreadPoolExecutor(2) as threads:
                running = [threads.submit(context.run, self.inner.run, items) for context in contexts]
                first, _ = (run.result() for run in running)
                return first

    async def scene() -> None:
        queue, log = make_queue(), list[Any]()
        works = [Doubled(Stepper(200, log)) for _ in range(4)]
        asked = [queue.submit(work, [number], [1]) for number, work in enumerate(works)]
        assert await asyncio.wait_for(asyncio.gather(*asked), 60) == [[0], [1], [2], [3]]
        assert (queue.requests, queue.active, queue._waiting) == (0, 0, [])

    asyncio.run(scene())


def test_a_closed_queue_stops_its_work() -> None:
    async def scene() -> None:
        queue, log = make_queue(), list[Any]()
        endless = Stepper(10**9, log)
        task = asyncio.create_task(queue.submit(endless, ["long"], [1]))
        await until(endless.begun.is_set)
        queue.close()
        with pytest.raises(ShuttingDown):
            await task
        assert queue.join(time.monotonic() + 10)

    asyncio.run(scene())
