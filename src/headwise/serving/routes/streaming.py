"""Text while it is being written, from the thread that writes to the client that reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from headwise.serving.served_models import GenerationModel


@dataclass(frozen=True)
class Piece:
    """The next bit of a sample; the last one of each says why it ended and how many tokens it has."""

    sample: int
    text: str
    stopped: Literal["length", "stop"] | None = None
    tokens: int = 0


async def pieces(model: GenerationModel, prompt: str, options: Mapping[str, Any]) -> AsyncIterator[Piece]:
    """Closing the iterator stops the writing within a token."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Piece | None] = asyncio.Queue()  # never more than max_tokens of each sample
    told = [0] * int(options["samples"])
    ended = [False] * len(told)

    def tell(writings: list[Any]) -> None:  # in the thread that writes
        for number, writing in enumerate(writings):
            text = writing.text[told[number] : writing.sure]
            told[number] = max(told[number], writing.sure)
            over = writing.stopped or len(writing.ids) == options["max_tokens"]
            if not ended[number] and (text or over):
                reason: Literal["length", "stop"] = "stop" if writing.stopped else "length"
                piece = Piece(number, text, reason if over else None, len(writing.ids))
                loop.call_soon_threadsafe(arrived.put_nowait, piece)
            ended[number] = over

    task = asyncio.create_task(model.write(prompt, options, tell))
    task.add_done_callback(lambda task: arrived.put_nowait(None))
    try:
        while (piece := await arrived.get()) is not None:
            yield piece
        await task
    finally:
        task.cancel()
