"""Classifiers: what `headwise.load` returns for a model that chooses among labels. Needs no torch by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle
from headwise.evaluation.classification import softmax

if TYPE_CHECKING:
    from headwise.tasks.inputs.interface import Inputs
    from headwise.tasks.interface import Seen


class Engine(Protocol):
    """Runs an encoder: torch, or ctranslate2."""

    name: str

    def answers(self, items: Sequence[Any]) -> NDArray[np.float32]:
        """One row of numbers per encoded item."""
        ...


@dataclass(frozen=True)
class Classification:
    """The likeliest label of an item, and the probabilities of all labels, likeliest first."""

    label: str
    probability: float
    probabilities: dict[str, float]

    def __str__(self) -> str:
        return self.label

    def __repr__(self) -> str:
        return f"Classification({self.label!r}, probability={self.probability:.3f}, {len(self.probabilities)} labels)"


class Classifier:
    """Chooses among labels: classifier.classify(["…"]) for texts; names of files for pictures."""

    def __init__(self, bundle: Bundle, assets: Assets, inputs: Inputs, engine: Engine) -> None:
        self.bundle, self.assets, self.inputs, self.engine = bundle, assets, inputs, engine
        # Probabilities are calibrated on validation data (Guo et al. 2017).
        self.temperature = float(bundle.card.get("temperature") or 1.0)

    def __repr__(self) -> str:
        return f"Classifier({str(self.bundle.path)!r}, {len(self.labels)} labels, engine={self.engine.name!r})"

    @property
    def labels(self) -> tuple[str, ...]:
        return self.assets.labels

    @overload
    def classify(self, items: str | Path) -> Classification: ...

    @overload
    def classify(self, items: Sequence[Any]) -> list[Classification]: ...

    def classify(self, items: str | Path | Sequence[Any]) -> Classification | list[Classification]:
        """One answer per item of a list, or the answer to a single text or file.

        An item is a text (or a pair of them), a picture or the name of its file.
        """
        if isinstance(items, str | Path):
            return self.classify_encoded(self.encode([items]))[0]
        return self.classify_encoded(self.encode(items))

    def encode(self, items: Sequence[Any]) -> list[Any]:
        """Each item as what the network reads of it."""
        return self.inputs.encode(items, self.assets, self.longest) if len(items) else []

    def classify_encoded(self, encoded: Sequence[Any]) -> list[Classification]:
        """One answer per item that `encode` returned."""
        probabilities = softmax(self._answers(encoded), self.temperature)
        order = np.argsort(-probabilities, axis=1, kind="stable")
        return [
            Classification(
                self.labels[places[0]], float(row[places[0]]), {self.labels[i]: float(row[i]) for i in places}
            )
            for row, places in zip(probabilities, order, strict=True)
        ]

    def logits(self, items: Sequence[Any]) -> NDArray[np.float32]:
        """(items, labels), before the temperature and the softmax."""
        return self._answers(self.encode(items))

    def _answers(self, encoded: Sequence[Any]) -> NDArray[np.float32]:
        if not len(encoded):
            return np.zeros((0, len(self.labels)), dtype=np.float32)
        return self.engine.answers(encoded)

    @property
    def longest(self) -> int | None:
        """The longest input, in tokens."""
        return self.bundle.settings.longest

    def look(self, item: Any, label: str | None = None) -> Seen:
        """Shows the attention in one item, and what in it speaks for a label, by default the likeliest."""
        from headwise.tasks.classify import TASK

        return TASK.look(self, item, label)
