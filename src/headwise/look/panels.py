"""Panels: matrices for all layers and heads with the tokens of their rows and columns, for pictures and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headwise.errors import UsageError

Floats = NDArray[np.float32]
Booleans = NDArray[np.bool_]
Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Panel:
    """Values (L, H, R, C): for each layer and head a matrix whose rows attend to its columns."""

    name: str
    title: str
    values: Floats
    rows: Sequence[str]
    columns: Sequence[str]
    row_title: str
    column_title: str
    scale: Literal["weights", "signed", "mask"] = "weights"  # weights: 0…1; signed: around 0; mask: 0 or 1
    first_layer: int = 1  # the number of the first layer in `values`
    first_head: int = 1
    numbered: bool = True  # whether a picture of one matrix names its layer and head

    def merged(self, row_groups: Groups, rows: Sequence[str], column_groups: Groups, columns: Sequence[str]) -> Panel:
        """Merges the pieces of a word: columns are summed, rows are averaged.

        So each row of weights still sums to 1, and what was masked for all pieces of a word is still 0.
        """
        received = np.stack([self.values[..., list(g)].sum(axis=-1) for g in column_groups], axis=-1)
        values = np.stack([received[..., list(g), :].mean(axis=-2) for g in row_groups], axis=-2)
        return replace(self, values=values.astype(np.float32), rows=list(rows), columns=list(columns))

    def chosen(self, layer: int | None, head: int | None) -> Panel:
        """Selects a layer and a head, counted from 1; None keeps all."""
        panel = self
        if layer is not None:
            first = _index("layer", layer, self.values.shape[0], self.title)
            panel = replace(panel, values=panel.values[first : first + 1], first_layer=layer)
        if head is not None:
            first = _index("head", head, self.values.shape[1], self.title)
            panel = replace(panel, values=panel.values[:, first : first + 1], first_head=head)
        return panel


def _index(kind: str, number: int, count: int, title: str) -> int:
    if not 1 <= number <= count:
        raise UsageError(f"there is no {kind} {number}: {title.lower()} has {kind}s 1 to {count}")
    return number - 1
