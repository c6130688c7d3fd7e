"""Answers that are sent while the work goes on: from the engine's thread to the client, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request

from headwise.serving.app_state import AppState
from headwise.serving.requests import unless_client_leaves

T = TypeVar("T")
STREAM = "text/event-stream"


async def passed_on(work: Callable[[Callable[[T], None]], Coroutine[Any, Any, Any]]) -> AsyncIterator[T]:
    """Yields what work hands over, from any thread, while it runs. Closing the iterator cancels the work."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[T | None] = asyncio.Queue()

    def hand_over(part: T) -> None:
        loop.call_soon_threadsafe(arrived.put_nowait, part)

    task = asyncio.create_task(work(hand_over))
    task.add_done_callback(lambda task: arrived.put_nowait(None))
    try:
        while (part := await arrived.get()) is not None:
            yield part
        await task
    finally:
        task.cancel()


async def begun(request: Request, state: AppState, model: str, stream: AsyncIterator[T]) -> AsyncIterator[T]:
    """Waits for the first part, so that an error before it is answered with its own status."""
    deadline = asyncio.get_running_loop().time() + state.limits.timeout
    with state.count_rejections(model):
        first = await unless_client_leaves(request, _next(stream), state.limits.timeout)

    async def rest() -> AsyncIterator[T]:
        try:
            yield first
            async with asyncio.timeout_at(deadline):
                async for part in stream:
                    yield part
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    return rest()


async def _next(stream: AsyncIterator[T]) -> T:
    return await anext(stream)
