"""Which jobs are done together, in which order, and what happens to those of a client that has left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from headwise.serving.batch_queue import Abandoned, Beat, Busy, Closing, Lane
from headwise.serving.limits import Limits


@dataclass(eq=False)
class Recorder:
    """Work that writes down its batches; the first waits until it is let go."""

    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    batches: list[list[Any]] = field(default_factory=list)

    def run(self, items: Sequence[Any], beat: Beat) -> Sequence[Any]:
        self.batches.append(list(items))
        self.begun.set()
        self.go.wait(10)
        if "bad" in items:
            raise ValueError("bad")
        return [f"{item}!" for item in items]


def lane(**changes: Any) -> Lane:
    return Lane("test", 1, Limits(**{"queue": 10, "delay": 0.0, **changes}))


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0)


async def first(line: Lane, work: Recorder) -> asyncio.Task[list[Any]]:
    """A request that the only thread is busy with."""
    task = asyncio.create_task(line.do(work, ["first"], [5]))
    await until(work.begun.is_set)
    return task


def test_what_waits_is_done_together_and_answered_in_order() -> None:
    async def scene() -> None:
        line, work = lane(), Recorder()
        one = await first(line, work)
        others = [asyncio.create_task(line.do(work, [f"a{n}", f"b{n}"], [5, 5])) for n in range(3)]
        await until(lambda: len(line._waiting) == 6)
        work.go.set()
        assert await one == ["first!"]
        assert await asyncio.gather(*others) == [[f"a{n}!", f"b{n}!"] for n in range(3)]
        # The second sentences stand behind the first ones of all others.
        assert work.batches[1] == ["a0", "a1", "a2", "b0", "b1", "b2"]

    asyncio.run(scene())


def test_only_like_sizes_and_equal_work_are_done_together() -> None:
    async def scene() -> None:
        line, work, other = lane(batch=3), Recorder(), Recorder()
        other.go.set()
        one = await first(line, work)
        sizes = {"short": 5, "long": 500, "also short": 6, "again": 7}
        tasks = [asyncio.create_task(line.do(work, [name], [size])) for name, size in sizes.items()]
        tasks.append(asyncio.create_task(line.do(other, ["else"], [5])))
        await until(lambda: len(line._waiting) == 5)
        line._pace.seconds = 1e-9  # room for any batch
        work.go.set()
        await asyncio.gather(one, *tasks)
        assert work.batches == [["first"], ["short", "also short", "again"], ["long"]]
        assert other.batches == [["else"]]

    asyncio.run(scene())


def test_one_bad_item_does_not_spoil_its_neighbours() -> None:
    async def scene() -> None:
        line, work = lane(), Recorder()
        one = await first(line, work)
        tasks = [asyncio.create_task(line.do(work, [name], [5])) for name in ("x", "bad", "y")]
        await until(lambda: len(line._waiting) == 3)
        line._pace.seconds = 1e-9
        work.go.set()
        await one
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert (results[0], results[2]) == (["x!"], ["y!"])
        assert isinstance(results[1], ValueError)
        assert ["x", "bad", "y"] in work.batches

    asyncio.run(scene())


def test_a_cancelled_request_is_not_begun_and_frees_its_place() -> None:
    async def scene() -> None:
        line, work = lane(queue=2), Recorder()
        one = await first(line, work)
        gone = asyncio.create_task(line.do(work, ["gone"], [5]))
        await until(lambda: line.requests == 2)
        with pytest.raises(Busy):
            await line.do(work, ["too many"], [5])
        gone.cancel()
        await until(lambda: line.requests == 1)
        work.go.set()
        await one
        assert await line.do(work, ["next"], [5]) == ["next!"]
        assert work.batches == [["first"], ["next"]]

    asyncio.run(scene())


def test_work_that_nobody_waits_for_is_stopped_at_its_next_beat() -> None:
    beats, stopped = threading.Event(), threading.Event()

    @dataclass(eq=False)
    class Endless:
        def run(self, items: Sequence[Any], beat: Beat) -> Sequence[Any]:
            try:
                while True:
                    beat()
                    beats.set()
            except Abandoned:
                stopped.set()
                raise

    async def scene() -> None:
        line = lane()
        task = asyncio.create_task(line.do(Endless(), [None], [1]))
        await until(beats.is_set)
        task.cancel()
        await until(stopped.is_set)
        await until(lambda: not line.active)

    asyncio.run(scene())


def test_an_urgent_job_goes_first_and_passes_the_bound() -> None:
    async def scene() -> None:
        line, work, probe = lane(queue=2), Recorder(), Recorder()
        one = await first(line, work)
        two = asyncio.create_task(line.do(work, ["second"], [5]))
        await until(lambda: len(line._waiting) == 1)
        urgent = asyncio.create_task(line.do(probe, ["probe"], [1], urgent=True))
        await until(lambda: len(line._waiting) == 2)
        probe.go.set()
        work.go.set()
        await urgent
        await asyncio.gather(one, two)
        assert probe.batches == [["probe"]]

    asyncio.run(scene())


def test_a_call_that_takes_far_too_long_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwise.serving.batch_queue.STUCK_SECONDS", 0.0)

    async def scene() -> None:
        line, work = lane(), Recorder()
        one = await first(line, work)
        assert "stuck" in str(line.trouble())
        line._pace.seconds = 1e9  # such calls do take long
        assert line.trouble() is None
        work.go.set()
        await one
        assert line.trouble() is None

    asyncio.run(scene())


def test_closing_refuses_whoever_waits_and_whoever_comes() -> None:
    async def scene() -> None:
        line, work = lane(), Recorder()
        tasks = [await first(line, work), asyncio.create_task(line.do(work, ["second"], [5]))]
        await until(lambda: len(line._waiting) == 1)
        line.refuse()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, Closing) for result in results)
        with pytest.raises(Closing):
            await line.do(work, ["late"], [5])
        work.go.set()

    asyncio.run(scene())
