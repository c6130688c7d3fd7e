"""Reads ahead in a thread, so that the model never waits for its next batch."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Prefetch(Generic[Item]):
    """Yields what `items` yields, with at most `ahead` items prepared in advance.

        with Prefetch(walk(batches, cursor)) as ready:
            for batch, cursor in ready: ...

    Each item carries its own cursor, so items that were read ahead but not yielded are simply made again after a
    resume. An exception raised by `items` is raised here after the items before it. Leaving the block ends the thread.
    """

    def __init__(self, items: Iterable[Item], ahead: int = 4) -> None:
        self._items = items
        self._queue: Queue[tuple[Item] | BaseException | None] = Queue(maxsize=ahead)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._fill, name="headwise-prefetch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Prefetch[Item]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Item]:
        while not self._closed.is_set():
            ready = self._queue.get()
            if isinstance(ready, tuple):
                yield ready[0]
                continue
            self.close()
            if ready is not None:
                raise ready

    def close(self) -> None:
        """Stops reading ahead, waits for the thread, and discards what is left in the queue."""
        self._closed.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.01)  # makes room for a thread blocked in put
            except Empty:
                continue

    def _fill(self) -> None:
        ending: BaseException | None = None
        try:
            for item in self._items:
                if not self._put((item,)):
                    return
        except BaseException as error:  # any exception is passed on to the consumer
            ending = error
        self._put(ending)

    def _put(self, ready: tuple[Item] | BaseException | None) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(ready, timeout=0.1)
            except Full:
                continue
            return True
        return False
