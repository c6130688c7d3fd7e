"""What decoding asks of a model: an encoder-decoder with a cached step. `headwise.Transformer` is one."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor


class State(Protocol):
    """The past of every row of a batch."""

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]; rows stay in groups, a group for each sentence."""
        ...


class Model(Protocol):
    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Any: ...

    def start(self, memory: Any, beam: int = 1) -> Any: ...

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        """Takes the newest token of each row, (rows,), and gives logits of the next, (rows, V)."""
        ...


# Rows that are finished still cost a step; dropping them copies the past of the others. Dropping from this share on.
DROP_SHARE = 0.2


def worth_dropping(open_rows: int, rows: int) -> bool:
    return rows - open_rows >= DROP_SHARE * rows
