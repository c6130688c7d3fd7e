"""Reading ahead: the same items in order, bounded, errors where they occur, a clean end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from headwise.data.prefetch import Prefetch


def test_items_come_in_order_and_end() -> None:
    with Prefetch(range(100), ahead=3) as ready:
        assert list(ready) == list(range(100))


def test_no_more_items_than_the_bound_are_made_ahead() -> None:
    made: list[int] = []
    waiting = threading.Event()

    def items() -> Iterator[int]:
        for number in range(50):
            made.append(number)
            if number == 4:
                waiting.set()
            yield number

    with Prefetch(items(), ahead=3) as ready:
        stream = iter(ready)
        assert next(stream) == 0
        assert waiting.wait(10)  # one yielded, three in the queue, one held by the thread
        assert len(made) == 5
        assert next(stream) == 1


def test_an_error_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("line 3 is bad")

    seen = []
    with Prefetch(items()) as ready, pytest.raises(ValueError, match="line 3 is bad"):
        seen.extend(ready)
    assert seen == [1, 2]


def test_leaving_early_ends_the_thread() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    ready = Prefetch(endless(), ahead=2)
    with ready:
        assert next(iter(ready)) == 1
    assert not ready._thread.is_alive()
    assert list(ready) == []


def test_an_exception_in_the_consumer_ends_the_thread() -> None:
    ready = Prefetch(range(1000), ahead=2)
    with pytest.raises(RuntimeError), ready:
        raise RuntimeError
    assert not ready._thread.is_alive()


def test_the_cursor_belongs_to_the_item_yielded() -> None:
    with Prefetch(((f"batch {index}", index + 1) for index in range(10)), ahead=5) as ready:
        for batch, cursor in ready:
            assert batch == f"batch {cursor - 1}"
