"""A batch as the model takes it: padded tensors, true lengths, and the lines that its sentences came from.

Axis letters: B sentences, S source positions, T target positions. The padding id is 0 everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.text.ragged import Ragged
from headwise.text.tokenizer import BOS, EOS, PAD

Anything = TypeVar("Anything", "Batch", "LanguageBatch")


def pad(sentences: Ragged, *, start: int | None = None, end: int | None = None) -> torch.Tensor:
    """(B, longest) int64, each row the sentence, with `start` before it and `end` after it where given."""
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
    """Sentence pairs. The decoder reads `target_input` and is to say `target_output`, one position ahead of it."""

    source: torch.Tensor  # (B, S) tokens, end of sentence
    source_lengths: torch.Tensor  # (B,)
    target_input: torch.Tensor  # (B, T) begin of sentence, tokens
    target_output: torch.Tensor  # (B, T) tokens, end of sentence
    target_lengths: torch.Tensor  # (B,)
    lines: NDArray[np.int64]  # (B,) line numbers in the corpus, from 1
    index: int  # place in its epoch
    tokens: int  # real target tokens, ends of sentences included: what a loss divides by
    source_tokens: int

    @classmethod
    def of(cls, source: Ragged, target: Ragged, lines: NDArray[np.integer] | None = None, index: int = 0) -> Batch:
        count = len(source.lengths)
        numbers = np.arange(1, count + 1) if lines is None else lines
        source_lengths = np.asarray(source.lengths, dtype=np.int64) + 1
        target_lengths = np.asarray(target.lengths, dtype=np.int64) + 1
        return cls(
            source=pad(source, end=EOS),
            source_lengths=torch.from_numpy(source_lengths),
            target_input=pad(target, start=BOS),
            target_output=pad(target, end=EOS),
            target_lengths=torch.from_numpy(target_lengths),
            lines=np.asarray(numbers, dtype=np.int64),
            index=index,
            tokens=int(target_lengths.sum()),
            source_tokens=int(source_lengths.sum()),
        )

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def inputs(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """What the model reads: source, target so far, and the source lengths where there is padding to hide."""
        padded = self.source_tokens < self.source.numel()
        return self.source, self.target_input, self.source_lengths if padded else None

    @property
    def targets(self) -> torch.Tensor:
        """What the model is to say, (B, T)."""
        return self.target_output

    @property
    def padding(self) -> tuple[float, float]:
        """The share of positions that hold no token: of the source, of the target."""
        return _unused(self.source_tokens, self.source), _unused(self.tokens, self.target_output)

    def to(self, device: torch.device | str) -> Batch:
        return _moved(self, device)

    def pin(self) -> Batch:
        """The same batch in page-locked memory, from which a copy to a GPU runs beside its work."""
        return _pinned(self)

    def split(self, parts: int) -> list[Batch]:
        """At most `parts` micro-batches of whole sentences, each no wider than its own longest sentence."""
        return [self._rows(low, high) for low, high in _shares(len(self), parts)]

    def blank(self) -> Batch:
        """The least that a model can read: for a rank that has no sentence of an update and must keep up with them."""
        nothing = Ragged.of([()])
        return Batch.of(nothing, nothing, index=self.index)

    def _rows(self, low: int, high: int) -> Batch:
        source_lengths, target_lengths = self.source_lengths[low:high], self.target_lengths[low:high]
        width, target_width = int(source_lengths.max()), int(target_lengths.max())
        return Batch(
            source=self.source[low:high, :width],
            source_lengths=source_lengths,
            target_input=self.target_input[low:high, :target_width],
            target_output=self.target_output[low:high, :target_width],
            target_lengths=target_lengths,
            lines=self.lines[low:high],
            index=self.index,
            tokens=int(target_lengths.sum()),
            source_tokens=int(source_lengths.sum()),
        )


@dataclass(frozen=True)
class LanguageBatch:
    """Blocks of running text: `targets` is `ids` one token on; positions past the end of the text hold padding."""

    ids: torch.Tensor  # (B, T)
    targets: torch.Tensor  # (B, T)
    lines: NDArray[np.int64]  # (B,) the line in which each row begins, from 1
    index: int
    tokens: int  # targets that are not padding

    @classmethod
    def of(cls, rows: NDArray[np.integer], lines: NDArray[np.integer] | None = None, index: int = 0) -> LanguageBatch:
        """From rows of T + 1 tokens: the block and the token after it."""
        whole = torch.from_numpy(np.asarray(rows, dtype=np.int64))  # (B, T + 1)
        numbers = np.ones(len(rows), dtype=np.int64) if lines is None else np.asarray(lines, dtype=np.int64)
        targets = whole[:, 1:].contiguous()
        return cls(whole[:, :-1].contiguous(), targets, numbers, index, int((targets != PAD).sum()))

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def inputs(self) -> tuple[torch.Tensor]:
        """What the model reads."""
        return (self.ids,)

    @property
    def padding(self) -> float:
        return _unused(self.tokens, self.targets)

    def to(self, device: torch.device | str) -> LanguageBatch:
        return _moved(self, device)

    def pin(self) -> LanguageBatch:
        return _pinned(self)

    def split(self, parts: int) -> list[LanguageBatch]:
        pieces = []
        for low, high in _shares(len(self), parts):
            targets = self.targets[low:high]
            tokens = int((targets != PAD).sum())
            pieces.append(LanguageBatch(self.ids[low:high], targets, self.lines[low:high], self.index, tokens))
        return pieces

    def blank(self) -> LanguageBatch:
        return LanguageBatch.of(np.array([[EOS, EOS]]), index=self.index)


def _unused(tokens: int, positions: torch.Tensor) -> float:
    return 1 - tokens / positions.numel() if len(positions) else 0.0


def _shares(count: int, parts: int) -> list[tuple[int, int]]:
    cuts = [count * part // parts for part in range(parts + 1)]
    return [(low, high) for low, high in pairwise(cuts) if high > low]


def _tensors(batch: Batch | LanguageBatch) -> dict[str, Any]:
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}


def _moved(batch: Anything, device: torch.device | str) -> Anything:
    return replace(batch, **{name: value.to(device, non_blocking=True) for name, value in _tensors(batch).items()})


def _pinned(batch: Anything) -> Anything:
    return replace(batch, **{name: value.pin_memory() for name, value in _tensors(batch).items()})
