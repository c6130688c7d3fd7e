"""What the handlers of one application share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request

from headwise.serving.errors import refusal
from headwise.serving.guard import Doors
from headwise.serving.limits import Limits
from headwise.serving.metrics import Metrics
from headwise.serving.model_index import Shelf


@dataclass(frozen=True)
class State:
    shelf: Shelf
    doors: Doors
    limits: Limits
    metrics: Metrics
    runs: Path | None = None

    @staticmethod
    def of(request: Request) -> State:
        state = request.app.state.headwise
        assert isinstance(state, State)
        return state

    @contextmanager
    def rejections(self, model: str) -> Iterator[None]:
        """Counts what a model's queue or time did not allow."""
        reasons = {429: "busy", 499: "client left", 503: "shutdown or failure", 504: "timeout"}
        try:
            yield
        except Exception as error:
            reason = reasons.get(refusal(error).status)
            if reason is not None:
                self.metrics.rejections.labels(model, reason).inc()
            raise
