"""The models of a server by name and by task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headwise.serving.batch_queue import BatchQueue
from headwise.serving.errors import RequestError
from headwise.serving.served_models import ServedModel


class ModelIndex:
    """Finds models; the error for a wrong name lists the right ones."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.replace(models)

    def replace(self, models: Sequence[ServedModel]) -> None:
        """Holds other models from now on."""
        self.models = {model.facts.name: model for model in models}

    def by_name(self, name: str) -> ServedModel:
        if name not in self.models:
            raise RequestError(404, f"there is no such model; there are {listed(self.models)}")
        return self.models[name]

    def any(self, name: str | None) -> ServedModel:
        """Finds a model by name; without a name it is the first."""
        return self.by_name(name) if name is not None else next(iter(self.models.values()))

    def of_task(self, task: str) -> list[ServedModel]:
        return [model for model in self.models.values() if model.facts.kind == task]

    def choose(self, task: str, name: str | None) -> ServedModel:
        """Finds a model of a task by name; without a name it is the first."""
        found = self.of_task(task)
        if not found:
            raise RequestError(400, f"this server has no model of the task '{task}'; ask /models for what it has")
        if name is None:
            return found[0]
        model = self.by_name(name)
        if model not in found:
            names = listed(one.facts.name for one in found)
            raise RequestError(400, f"this model is not of the task '{task}'; those that are: {names}")
        return model


def queue_by_name(task: str) -> Callable[[ModelIndex, dict[str, Any]], BatchQueue | None]:
    """Makes a function that finds the queue of the model that a request names, or else of the task's first."""

    def find(index: ModelIndex, fields: dict[str, Any]) -> BatchQueue | None:
        name = fields.get("model")
        return next((model.queue for model in index.of_task(task) if name in (None, model.facts.name)), None)

    return find


def listed(names: Iterable[str]) -> str:
    """Joins names for a message."""
    return ", ".join(names) or "none"
