"""Which jobs share a batch, in which order, and what happens to those of a client that has left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from headwise.serving.batch_queue import Abandoned, BatchQueue, Heartbeat, QueueFull, ShuttingDown
from headwise.serving.limits import Limits


@dataclass(eq=False)
class Recorder:
    """Records its batches; blocks until `go` is set."""

    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    batches: list[list[Any]] = field(default_factory=list)

    def run(self, items: Sequence[Any], heartbeat: Heartbeat) -> Sequence[Any]:
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
        await until(lambda: len(queue._waiting) == 6)
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
        await until(lambda: len(queue._waiting) == 5)
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
        await until(lambda: len(queue._waiting) == 3)
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


def test_work_without_clients_is_stopped_at_its_next_heartbeat() -> None:
    beats, stopped = threading.Event(), threading.Event()

    @dataclass(eq=False)
    class Endless:
        def run(self, items: Sequence[Any], heartbeat: Heartbeat) -> Sequence[Any]:
            try:
                while True:
                    heartbeat()
                    beats.set()
            except Abandoned:
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
        await until(lambda: len(queue._waiting) == 1)
        urgent = asyncio.create_task(queue.submit(probe, ["probe"], [1], urgent=True))
        await until(lambda: len(queue._waiting) == 2)
        probe.go.set()
        work.go.set()
        await urgent
        await asyncio.gather(one, two)
        assert probe.batches == [["probe"]]

    asyncio.run(scene())


def test_a_call_that_takes_far_too_long_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwise.serving.batch_queue.STUCK_SECONDS", 0.0)

    async def scene() -> None:
        queue, work = make_queue(), Recorder()
        one = await first(queue, work)
        assert "stuck" in str(queue.problem())
        queue._pace.seconds = 1e9  # such calls do take long
        assert queue.problem() is None
        work.go.set()
        await one
        assert queue.problem() is None

    asyncio.run(scene())


def test_a_closed_queue_refuses_waiting_and_new_requests() -> None:
    async def scene() -> None:
        queue, work = make_queue(), Recorder()
        tasks = [await first(queue, work), asyncio.create_task(queue.submit(work, ["second"], [5]))]
        await until(lambda: len(queue._waiting) == 1)
        queue.close()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, ShuttingDown) for result in results)
        with pytest.raises(ShuttingDown):
            await queue.submit(work, ["late"], [5])
        work.go.set()

    asyncio.run(scene())
