"""Parts of an answer are passed on while the work goes on, and work that nobody waits for is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headwise.serving.streams import passed_on


def test_what_a_thread_hands_over_arrives_in_order_and_then_its_error() -> None:
    async def work(hand_over: Callable[[int], None]) -> None:
        await asyncio.to_thread(lambda: [hand_over(number) for number in range(1, 4)])
        raise ValueError("broken")

    found: list[int] = []

    async def collect() -> None:
        async for number in passed_on(work):
            found.append(number)

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(collect())
    assert found == [1, 2, 3]


def test_closing_the_stream_cancels_the_work() -> None:
    async def leave() -> bool:
        over = asyncio.Event()

        async def work(hand_over: Callable[[str], None]) -> None:
            hand_over("first")
            try:
                await asyncio.Event().wait()
            finally:
                over.set()

        stream = passed_on(work)
        assert await anext(stream) == "first"
        await stream.aclose()  # type: ignore[attr-defined]
        await over.wait()
        return over.is_set()

    assert asyncio.run(leave())
