"""One kind of batch for everything that is learned from: text, pictures and sound.

Axis letters: B rows, S source positions, T target positions. Token ids are padded with 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.text.ragged import Ragged
from headwise.text.tokenizer import PAD

Widths = NDArray[np.int64] | None


def pad(sentences: Ragged, *, start: int | None = None, end: int | None = None) -> torch.Tensor:
    """Sentences as one tensor: (B, longest) int64, with `start` before and `end` after each sentence where given."""
    first = int(start is not None)
    lengths = np.asarray(sentences.lengths, dtype=np.int64)
    width = int(lengths.max(initial=0)) + first + int(end is not None)
    rows = np.full((len(lengths), width), PAD, dtype=np.int64)
    column = np.arange(width) - first
    rows[(column >= 0) & (column < lengths[:, None])] = sentences.tokens
    if start is not None:
        rows[:, 0] = start
    if end is not None:
        rows[np.arange(len(lengths)), lengths + first] = end
    return torch.from_numpy(rows)


@dataclass(frozen=True)
class Batch:
    """What a network reads, what it is to say, and the lines of the corpus that both came from. Rows come first."""

    inputs: tuple[torch.Tensor, ...]  # the arguments of the network's `states`
    # (B,) or (B, T), of which those equal to `ignore` do not count; or soft ones, (B, V) probabilities: rows count.
    targets: torch.Tensor
    tokens: int  # targets that count: what a loss divides by
    lines: NDArray[np.int64]  # (B,) line numbers in the corpus, from 1
    index: int = 0  # place in its epoch
    # For each input, then for the targets: how many columns of each row are real. None: all are, nothing is padded.
    widths: tuple[Widths, ...] = ()
    ignore: int = PAD

    @classmethod
    def of(
        cls,
        inputs: Sequence[torch.Tensor],
        targets: torch.Tensor,
        lines: NDArray[np.integer] | None = None,
        index: int = 0,
        widths: Sequence[Widths] = (),
        ignore: int = PAD,
    ) -> Batch:
        """Counts the targets; without `lines` the rows are numbered from 1."""
        numbers = np.arange(1, len(targets) + 1) if lines is None else lines
        tokens = len(targets) if targets.is_floating_point() else int((targets != ignore).sum())
        return cls(tuple(inputs), targets, tokens, np.asarray(numbers, dtype=np.int64), index, tuple(widths), ignore)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def padding(self) -> float:
        """The share of target positions that are padding."""
        return 1 - self.tokens / self.positions if self.positions else 0.0

    @property
    def unit(self) -> str:
        """What is counted: a label per row, or the tokens of texts."""
        return "rows" if self.targets.dim() == 1 or self.targets.is_floating_point() else "tokens"

    @property
    def positions(self) -> int:
        """Target positions, with their padding; where only some tokens of a row are asked for, their share of it."""
        if self.targets.is_floating_point():
            return len(self.targets)
        width = self.widths[-1] if self.widths else None
        real = self.tokens if width is None else int(width.sum())
        return round(self.targets.numel() * self.tokens / real) if real else self.targets.numel()

    def to(self, device: torch.device | str) -> Batch:
        inputs = tuple(tensor.to(device, non_blocking=True) for tensor in self.inputs)
        return replace(self, inputs=inputs, targets=self.targets.to(device, non_blocking=True))

    def pin(self) -> Batch:
        """The same batch in page-locked memory, from which a copy to a GPU runs beside the GPU's work."""
        return replace(self, inputs=tuple(x.pin_memory() for x in self.inputs), targets=self.targets.pin_memory())

    def with_inputs(self, more: Sequence[torch.Tensor]) -> Batch:
        """The same batch with further inputs, none of them padded."""
        if not more:
            return self
        widths = (*self.widths[:-1], *(None for _ in more), self.widths[-1]) if self.widths else ()
        return replace(self, inputs=(*self.inputs, *more), widths=widths)

    def split(self, parts: int) -> list[Batch]:
        """At most `parts` micro-batches of whole rows, each no wider than its own longest row."""
        cuts = [len(self) * part // parts for part in range(parts + 1)]
        return [self._rows(low, high) for low, high in pairwise(cuts) if high > low]

    def _rows(self, low: int, high: int) -> Batch:
        widths = tuple(None if width is None else width[low:high] for width in self.widths)
        tensors = [
            tensor[low:high] if width is None else tensor[low:high, : int(width.max())]
            for tensor, width in zip((*self.inputs, self.targets), widths or self._unpadded, strict=True)
        ]
        return Batch.of(tensors[:-1], tensors[-1], self.lines[low:high], self.index, widths, self.ignore)

    def blank(self) -> Batch:
        """The least that a network can read: for a rank that has no row of an update and must keep up with others."""
        inputs = []
        for tensor, width in zip(self.inputs, self.widths or self._unpadded, strict=False):
            shape = (1, *tensor.shape[1:]) if width is None else (1, 1, *tensor.shape[2:])
            make = torch.zeros if len(shape) > 1 else torch.ones  # one axis: the lengths of rows
            inputs.append(make(shape, dtype=tensor.dtype))
        padded = bool(self.widths) and self.widths[-1] is not None
        shape = (1, 1) if padded else (1, *self.targets.shape[1:])
        targets = torch.full(shape, max(0, self.ignore + 1), dtype=self.targets.dtype)
        return Batch.of(inputs, targets, index=self.index, ignore=self.ignore)

    @property
    def _unpadded(self) -> tuple[None, ...]:
        return (None,) * (len(self.inputs) + 1)
