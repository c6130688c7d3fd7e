"""What decoding asks of a model: an encoder-decoder with a cached step. `headwise.Transformer` is one."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor


class State(Protocol):
    """The past of every row of a batch."""

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]; rows are in groups, one a sentence, and sentences stay in their order.

        A group is of as many rows as `start` was told, but for the first step, which may have one row a sentence.
        """
        ...


class Model(Protocol):
    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Any: ...

    def start(self, memory: Any, beam: int = 1) -> Any: ...

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        """Takes the newest token of each row, (rows,), and gives logits of the next, (rows, V)."""
        ...


class Halves(Protocol):
    """A model whose step is in two halves, so that the logits of each step can lie where those of the last did."""

    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Any: ...

    def start(self, memory: Any, beam: int = 1) -> Any: ...

    def advance(self, state: Any, tokens: Tensor) -> Tensor:
        """Takes the newest token of each row, (rows,), and gives their states, (rows, D)."""
        ...

    def project(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        """Logits of the next token from some of these rows; `out` is room that may be used for them."""
        ...


class WholeStep:
    """Any model as two halves, the second of which has nothing left to do."""

    def __init__(self, model: Model) -> None:
        self.encode, self.start, self.advance = model.encode, model.start, model.step

    def project(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        return states


def worth_dropping(open_rows: int, rows: int, share: float) -> bool:
    """Rows that are finished still cost a step; dropping them is worth a copy of the others from some share on."""
    return rows - open_rows >= share * rows
