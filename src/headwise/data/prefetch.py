"""Reading ahead in a thread, so that the model never waits for its next batch."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Prefetch(Generic[Item]):
    """Hands out what `items` yields, at most `ahead` of them made before they are asked for.

        with Prefetch(walk(batches, cursor)) as ready:
            for batch, cursor in ready: ...

    Each item carries its own cursor, so what was read ahead and not handed out is simply made again after a resume. An
    exception of `items` is raised at the place in the order where it happened. Leaving the block ends the thread.
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
        """Stop reading ahead and wait for the thread; what is left in the queue is thrown away."""
        self._closed.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.01)  # room for a thread that waits to put
            except Empty:
                continue

    def _fill(self) -> None:
        ending: BaseException | None = None
        try:
            for item in self._items:
                if not self._put((item,)):
                    return
        except BaseException as error:  # whatever it is, it belongs to the consumer
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
