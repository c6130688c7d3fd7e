"""Embedders: what `headwise.load` returns for a model of sentence vectors. Needs no torch by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle
from headwise.evaluation.retrieval import nearest, normalised
from headwise.tasks.classifier import Engine
from headwise.tasks.inputs.text import INPUTS

if TYPE_CHECKING:
    from headwise.tasks.interface import Seen


@dataclass(frozen=True)
class Neighbour:
    """One of the texts that are most similar to a query."""

    text: str
    place: int  # among the texts that were searched, from 0
    similarity: float  # cosine


class Embedder:
    """Turns texts into vectors of length 1, whose dot products are cosines: embedder.embed(["…"]) is (texts, D)."""

    def __init__(self, bundle: Bundle, assets: Assets, engine: Engine) -> None:
        self.bundle, self.assets, self.engine = bundle, assets, engine

    def __repr__(self) -> str:
        width = self.bundle.architecture.get("model_dim")
        return f"Embedder({str(self.bundle.path)!r}, {width} dimensions, engine={self.engine.name!r})"

    @property
    def longest(self) -> int | None:
        """The longest input, in tokens; of a longer text the beginning is read."""
        return self.assets.longest(self.bundle.settings.longest)

    def embed(self, texts: str | Sequence[str]) -> NDArray[np.float32]:
        """One vector per text of a list, (texts, D), or the vector of a single text, (D,)."""
        if isinstance(texts, str):
            (vector,) = self.embed([texts])
            return np.asarray(vector)
        return self.embed_encoded(self.encode(texts))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Each text as token ids; of one that is too long the beginning."""
        single = Assets(self.assets.text)  # of a classifier of pairs, too, single texts are embedded
        return INPUTS.encode(texts, single, self.longest) if len(texts) else []

    def embed_encoded(self, encoded: Sequence[list[int]]) -> NDArray[np.float32]:
        """One vector per text that `encode` returned, (texts, D)."""
        if not len(encoded):
            return np.zeros((0, int(self.bundle.architecture.get("model_dim", 0))), dtype=np.float32)
        return normalised(self.engine.answers(encoded))

    def similar(self, query: str, texts: Sequence[str], top: int = 5) -> list[Neighbour]:
        """The texts that are most similar to a query, most similar first."""
        vectors = self.embed([query, *texts])
        found = nearest(vectors[0], vectors[1:], top)
        return [Neighbour(texts[place], place, similarity) for place, similarity in found]

    def look(self, text: str) -> Seen:
        """Shows the attention in one text."""
        from headwise.tasks.embed import TASK

        return TASK.look(self, text)
