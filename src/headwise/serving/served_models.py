"""The models of a server, each with its queues; what every model can do, whatever its task."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headwise.errors import DataError
from headwise.serving.batch_queue import BatchQueue
from headwise.serving.errors import RequestError
from headwise.serving.limits import Limits
from headwise.serving.prometheus import Metrics
from headwise.serving.routes import task_routes
from headwise.serving.uploads import refused_file
from headwise.tasks.interface import Explains, Served

FILES = {"image": "the picture", "sound": "the sound"}  # by what a model reads
SIZE_OF_FILE = 10_000  # that a look at a picture or a sound counts in its queue, like a text of 100 characters
PROBE_SECONDS = 1.5  # in which a healthy model decodes a word, even while it works on requests
PROBE_MAX_AGE = 0.2  # seconds for which a probe's result is reused, so that many health checks cause few decodes


@dataclass(frozen=True, eq=False)
class LookWork:
    """Draws what a model attends to. Never equal to another, so that no two share a batch: that would save nothing."""

    draw: Callable[[Any, str | None], Any]
    target: str | None
    what: str  # for messages: the picture, the sound

    def run(self, items: Sequence[str | bytes]) -> Sequence[Any]:
        return [self._draw(item) for item in items]

    def _draw(self, item: str | bytes) -> Any:
        try:
            return self.draw(item, self.target)
        except DataError as error:
            refusal = refused_file(error, self.what)
        raise refusal  # out here, so that it does not keep the other error, and with that the file, in memory


@dataclass(frozen=True)
class ProbeWork:
    """Decodes something small, as the work of one of the model's queues does."""

    model: ServedModel
    side: bool

    def run(self, items: Sequence[None]) -> Sequence[None]:
        self.model.probe_side() if self.side else self.model.served.probe()
        return [None for _ in items]


class ServedModel:
    """Holds an opened model and its queues. A task's routes extend it by what the task does.

    Pictures of attention, and what else is slow, go through `side_queue`, so that they do not delay the rest. A model
    that can do only one thing at a time has the same queue twice.
    """

    def __init__(self, served: Served, queue: BatchQueue, side_queue: BatchQueue) -> None:
        self.served, self.queue, self.side_queue = served, queue, side_queue
        self.facts = served.facts
        side_queue.loads = side_queue is not queue  # the model has decoded once before it is served; nothing else has
        self._probe: asyncio.Task[str | None] | None = None
        self._probed = -math.inf
        self._looked = False

    def probe_side(self) -> None:
        """Decodes something small as the side queue's work does; raises an error if that fails."""
        self.served.probe()

    @property
    def queues(self) -> set[BatchQueue]:
        return {self.queue, self.side_queue}

    async def look(self, item: str | bytes, target: str | None) -> str:
        """Draws a page of what the model attends to in a text or a file."""
        return str(await self._look(self.served.look, item, target))

    async def explain(self, item: str | bytes, target: str | None) -> dict[str, Any]:
        """Tells what in a text or a file moved the model's answer."""
        if not isinstance(self.served, Explains):
            raise RequestError(400, "this model does not choose among labels; ask for its page")
        return dict(await self._look(self.served.explain, item, target))

    async def _look(self, draw: Callable[[Any, str | None], Any], item: str | bytes, target: str | None) -> Any:
        if isinstance(item, bytes) and not self._looked:
            # Files may have been read in this queue, but the engine that shows attention is loaded only now.
            self.side_queue.loads = self._looked = True
        size = len(item) * 100 if isinstance(item, str) else SIZE_OF_FILE
        work = LookWork(draw, target, FILES.get(self.facts.reads, "the file"))
        (found,) = await self.side_queue.submit(work, [item], [size])
        return found

    async def problem(self) -> str | None:
        """Says why one of its queues cannot answer at present; None: both can, though they may be busy."""
        if self._probe is None or (self._probe.done() and time.monotonic() - self._probed > PROBE_MAX_AGE):
            self._probe = asyncio.create_task(self._decode_all())
        return await asyncio.shield(self._probe)

    async def _decode_all(self) -> str | None:
        queues = {self.queue: False}
        if self.side_queue.used:  # else the probe would load what no request has needed yet
            queues.setdefault(self.side_queue, True)
        found = await asyncio.gather(*(self._decode(queue, ProbeWork(self, side)) for queue, side in queues.items()))
        self._probed = time.monotonic()
        return next((problem for problem in found if problem), None)

    async def _decode(self, queue: BatchQueue, probe: ProbeWork) -> str | None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await queue.submit(probe, [None], [1], urgent=True)
        except TimeoutError:
            # The probe may only have waited: every thread can be busy, and show signs of life.
            return "the engine does not answer" if queue.is_stuck(probe) else None
        except Exception as error:
            return f"the engine fails: {type(error).__name__}"
        return None


def serve_models(served: Sequence[Served], limits: Limits, metrics: Metrics) -> list[ServedModel]:
    """Gives each model the queues that the routes of its task ask for."""
    models = []
    for one in served:
        name = one.facts.name

        def make_queue(kind: str, workers: int, name: str = name) -> BatchQueue:
            return metrics.watch(BatchQueue(name, workers, limits, metrics.observer(name, kind)), name, kind)

        models.append(task_routes(one.facts.kind).open_model(one, make_queue, limits))
    return models
