"""What the handlers of one application share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request

from headwise.serving.access import AccessRules
from headwise.serving.errors import as_request_error
from headwise.serving.limits import Limits
from headwise.serving.model_index import ModelIndex
from headwise.serving.prometheus import Metrics

REASONS = {429: "busy", 499: "client left", 503: "shutdown or failure", 504: "timeout"}


@dataclass(frozen=True)
class AppState:
    """Holds the models, rules and metrics; `runs` is the folder of training runs to show."""

    index: ModelIndex
    access: AccessRules
    limits: Limits
    metrics: Metrics
    runs: Path | None = None

    @staticmethod
    def of(request: Request) -> AppState:
        state = request.app.state.headwise
        assert isinstance(state, AppState)
        return state

    def check_room(self, task: str) -> None:
        """Raises QueueFull if every model of a task is busy: then a file need not be read to be refused."""
        found = self.index.of_task(task)
        if found and all(model.queue.full for model in found):
            with self.count_rejections(found[0].facts.name):
                found[0].queue.check_room()

    @contextmanager
    def count_rejections(self, model: str) -> Iterator[None]:
        """Counts requests that fail because of the model's queue, its engine or the deadline."""
        try:
            yield
        except Exception as error:
            reason = REASONS.get(as_request_error(error).status)
            if reason is not None:
                self.metrics.rejections.labels(model, reason).inc()
            raise
