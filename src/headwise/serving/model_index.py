"""The models of a server by name and by task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def listed(names: Iterable[str]) -> str:
    """Joins names for a message."""
    return ", ".join(names) or "none"
