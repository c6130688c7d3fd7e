"""Which source word a target word comes from, as cross-attention has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.look.panels import Floats, Panel


@dataclass(frozen=True)
class Alignment:
    """One link for each target word, to the source word that it attended to most."""

    source_words: Sequence[str]
    target_words: Sequence[str]
    weights: Floats  # (target words, source words); ⟨end⟩ is left out on both sides
    links: Sequence[tuple[int, int]]  # (source word, target word), from 0, in the order of the source

    def __str__(self) -> str:
        """Moses format: `0-0 1-2`, source then target."""
        return " ".join(f"{source}-{target}" for source, target in self.links)

    def panel(self) -> Panel:
        """The links as a matrix of 0 and 1."""
        hard = np.zeros((1, 1, len(self.target_words), len(self.source_words)), dtype=np.float32)
        for source, target in self.links:
            hard[0, 0, target, source] = 1.0
        return Panel("alignment", "Alignment", hard, self.target_words, self.source_words, "target", "source", "mask")


def align(cross: Panel) -> Alignment:
    """Hard links by the largest weight. `cross` is on words, ⟨end⟩ last on both sides; layers and heads are averaged.

    The end of the source has no say: models park attention there when they need none, and it is no word.
    """
    weights = cross.values.mean(axis=(0, 1))[:-1, :-1]  # (target words, source words)
    links = sorted((int(row.argmax()), target) for target, row in enumerate(weights) if row.size)
    return Alignment(list(cross.columns[:-1]), list(cross.rows[:-1]), weights, links)
