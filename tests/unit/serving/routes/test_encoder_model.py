from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from headwise.serving import batch_queue
from headwise.serving.batch_queue import BatchQueue
from headwise.serving.errors import RequestError
from headwise.serving.limits import Limits
from headwise.serving.routes.encoder_model import LONG_TEXT, MOST_TOKENS, ReadWork, check_tokens, off_loop


def test_what_has_too_many_tokens_is_refused_with_the_bound() -> None:
    check_tokens([MOST_TOKENS])
    with pytest.raises(RequestError, match=f"but a request may have {MOST_TOKENS:,}") as caught:
        check_tokens([MOST_TOKENS, 1])
    assert caught.value.status == 413


@pytest.mark.parametrize("characters", [1, LONG_TEXT])
def test_long_texts_are_encoded_in_another_thread_with_the_same_result(characters: int) -> None:
    assert asyncio.run(off_loop(sorted, ["b", "a"], characters)) == ["a", "b"]


def test_pictures_of_others_are_read_between_those_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_queue, "TURN", 0.0)
    begun, go, order = threading.Event(), threading.Event(), []

    def read_file(content: bytes) -> bytes:
        order.append(content)
        begun.set()
        go.wait(10)
        return content

    async def scene() -> None:
        queue, model = BatchQueue("read", 1, Limits()), SimpleNamespace(served=SimpleNamespace(read_file=read_file))

        def read(*contents: bytes) -> asyncio.Task[list[Any]]:
            work: Any = ReadWork(model, len(contents))  # type: ignore[arg-type]
            return asyncio.create_task(queue.submit(work, list(enumerate(contents, start=1)), [1] * len(contents)))

        many = read(b"first", b"second", b"third")
        while not begun.is_set():
            await asyncio.sleep(0)
        other = read(b"other")
        while queue.requests < 2:
            await asyncio.sleep(0)
        go.set()
        assert await asyncio.gather(many, other) == [[b"first", b"second", b"third"], [b"other"]]
        assert order[-1] == b"third", "the other request waited for the whole of the first"

    asyncio.run(scene())
