"""Refuses requests to full queues before they get a task of their own: a busy server does this more than anything else.

Only what can be told at a glance is refused here, and only while a queue is full: a body of JSON whose fields name the
queue. Everything else takes the usual way, on which a full queue is noticed as well, only later.
"""

from __future__ import annotations

import asyncio
import json
import logging

from headwise.serving.model_index import ModelIndex
from headwise.serving.prometheus import Metrics
from headwise.serving.routes import queue_finders

# Names no model: whoever gets this may have no key. The usual way names it.
BUSY = "the server is busy; try again in a moment"
LONGEST_BODY = 32 * 1024  # bytes: to parse a longer one takes longer than to refuse it is worth
LOG_SECONDS = 1.0  # refusals are summed up in one line of the log

log = logging.getLogger("headwise.access")


class Overload:
    """Tells which requests are refused at once, and counts them."""

    def __init__(self, index: ModelIndex, metrics: Metrics) -> None:
        self.index, self.metrics = index, metrics
        self.finders = queue_finders()
        self._refused = 0

    def concerns(self, path: str) -> bool:
        """Tells whether a request to this path should be looked at: some queue is full."""
        return path in self.finders and any(
            queue.full for model in self.index.models.values() for queue in model.queues
        )

    def refuses(self, path: str, body: bytes) -> bool:
        """Tells whether the queue that the request would wait in is full; counts the request if so."""
        try:
            fields = json.loads(body)
            queue = self.finders[path](self.index, fields) if isinstance(fields, dict) else None
        except (ValueError, RecursionError):
            return False
        if queue is None or not queue.full:
            return False
        self.metrics.requests.labels(path, "POST", 429).inc()
        self.metrics.rejections.labels(queue.name, "busy").inc()
        if not self._refused:
            asyncio.get_running_loop().call_later(LOG_SECONDS, self._sum_up)
        self._refused += 1
        return True

    def _sum_up(self) -> None:
        log.info("refused %d requests with 429: a queue is full", self._refused)
        self._refused = 0
