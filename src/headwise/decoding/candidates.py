"""From states to the likeliest tokens and their log-probabilities, touching the (rows, V) numbers little.

They are made and used a few rows at a time, so that they never leave the cache. A top-k over a whole vocabulary costs a
good part of a small model's step. A maximum without its place is some ten times as fast, so where there are many
numbers the vocabulary is cut into blocks, and only the blocks with the highest maxima are looked into.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.decoding.model import Halves

_BLOCK = 64
_FEW = 40_000  # numbers among which a plain top-k is faster than blocks
_ROWS = 64  # whose logits are held at once on a CPU


@dataclass(frozen=True)
class Scored:
    """What may follow some of the rows; both (rows, V) are overwritten when the next rows come."""

    rows: slice
    logits: Tensor
    log_probs: Tensor


@dataclass
class NextTokens:
    """The last part of a step: states of all rows to log-probabilities of the next token, a few rows at a time."""

    model: Halves
    _room: tuple[Tensor, Tensor] | None = None

    def __call__(self, states: Tensor) -> Iterator[Scored]:
        count = states.size(0)
        at_once = _ROWS if states.device.type == "cpu" else count
        for first in range(0, count, at_once):
            rows = slice(first, min(first + at_once, count))
            yield self._score(rows, states if count <= at_once else states[rows])

    def _score(self, rows: slice, states: Tensor) -> Scored:
        count = states.size(0)
        if self._room is None or self._room[0].size(0) < count:
            logits = self.model.project(states)
            self._room = logits, torch.log_softmax(logits, dim=-1)
            return Scored(rows, *self._room)
        logits = self.model.project(states, self._room[0][:count])
        return Scored(rows, logits, torch.log_softmax(logits, dim=-1, out=self._room[1][:count]))


def log_normaliser(logits: Tensor) -> Tensor:
    """log Σ exp(logits), (rows, V) -> (rows,): a token's log-probability is its logit minus this."""
    highest = logits.amax(dim=-1, keepdim=True)
    return (logits - highest).exp_().sum(dim=-1).log_().add_(highest.squeeze(-1))


def likeliest(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The highest logit of each row and its token: (rows, V) -> (rows,), (rows,)."""
    highest, tokens = top_tokens(logits, 1)
    return highest.squeeze(-1), tokens.squeeze(-1)


def top_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest logits of each row, best first, and their tokens: (rows, V) -> (rows, count) twice.

    Exact: the `count` highest lie in the `count` blocks with the highest maxima, or in the rest after the last block.
    """
    rows, vocab = logits.shape
    blocks = vocab // _BLOCK
    if blocks <= 2 * count or logits.numel() <= _FEW:
        if count == 1:
            highest, tokens = logits.max(dim=-1, keepdim=True)
            return highest, tokens
        highest, tokens = logits.topk(min(count, vocab), dim=-1)
        return highest, tokens
    whole = blocks * _BLOCK
    blocked = logits[:, :whole].view(rows, blocks, _BLOCK)  # (rows, blocks, _BLOCK)
    maxima = blocked.amax(dim=-1)  # (rows, blocks)
    chosen = maxima.topk(count, dim=-1, sorted=False).indices if count > 1 else maxima.argmax(dim=-1, keepdim=True)
    near = blocked.gather(1, chosen[:, :, None].expand(-1, -1, _BLOCK)).flatten(1)  # (rows, count · _BLOCK)
    if whole < vocab:
        near = torch.cat((near, logits[:, whole:]), dim=1)
        chosen = torch.cat((chosen, chosen.new_full((rows, 1), blocks)), dim=1)  # the rest counts as one more block
    highest, place = near.topk(count, dim=-1) if count > 1 else near.max(dim=-1, keepdim=True)
    block = place.div(_BLOCK, rounding_mode="floor")
    return highest, chosen.gather(1, block).mul_(_BLOCK).add_(place - block * _BLOCK)
