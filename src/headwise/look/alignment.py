"""Word alignment by cross-attention: which source word each target word comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.look.panels import Floats, Panel


@dataclass(frozen=True)
class Alignment:
    """One link per target word, to the source word that it attended to most."""

    source_words: Sequence[str]
    target_words: Sequence[str]
    weights: Floats  # (target words, source words); ⟨end⟩ is left out on both sides
    links: Sequence[tuple[int, int]]  # (source word, target word), from 0, in the order of the source

    def __str__(self) -> str:
        """Moses format: `0-0 1-2`, source then target."""
        return " ".join(f"{source}-{target}" for source, target in self.links)

    def panel(self) -> Panel:
        """Returns the links as a matrix of zeros and ones."""
        hard = np.zeros((1, 1, len(self.target_words), len(self.source_words)), dtype=np.float32)
        for source, target in self.links:
            hard[0, 0, target, source] = 1.0
        return Panel("alignment", "Alignment", hard, self.target_words, self.source_words, "target", "source", "mask")


def align(cross: Panel) -> Alignment:
    """Links each target word to the source word of largest weight, averaged over the layers and heads of `cross`.

    `cross` is by words, with ⟨end⟩ last on both sides. The end of the source is ignored: it is not a word, and models
    put attention there that they do not need elsewhere.
    """
    weights = cross.values.mean(axis=(0, 1))[:-1, :-1]  # (target words, source words)
    links = sorted((int(row.argmax()), target) for target, row in enumerate(weights) if row.size)
    return Alignment(list(cross.columns[:-1]), list(cross.rows[:-1]), weights, links)
