"""From states to the likeliest tokens and their log-probabilities, touching the (rows, V) numbers little.

They are made and used a few rows at a time, so that they never leave the cache. A top-k over a whole vocabulary costs a
good part of a small model's step. A maximum without its place is some ten times as fast, so where there are many
numbers the vocabulary is cut into blocks, and only the blocks with the highest maxima are looked into.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.decoding.model import Halves

_BLOCK = 64
# Numbers among which a plain top-k, or a plain maximum, is faster than blocks.
_FEW = 40_000
_FEW_FOR_ONE = 130_000
_ROWS = 128  # whose logits are held at once on a CPU


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

    def __call__(self, states: Tensor, group: int = 1) -> Iterator[Scored]:
        """A `group` of rows is never torn apart."""
        count = states.size(0)
        at_once = max(1, _ROWS // group) * group if states.device.type == "cpu" else count
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
    if blocks <= 2 * count or logits.numel() <= (_FEW_FOR_ONE if count == 1 else _FEW):
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


def top_pairs(log_probs: Tensor, so_far: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The `count` best ways for a sentence to go on: (B · width, V), (B, width) -> four of (B, count), best first.

    They are the sum of log-probabilities with the new token, which of the sentence's rows goes on, the token, and its
    log-probability. Exact, as `top_tokens` is, but blocks are chosen among those of all rows of a sentence.
    """
    sentences, width = so_far.shape
    vocab = log_probs.size(1)
    blocks = vocab // _BLOCK
    if blocks * width <= 2 * count or log_probs.numel() <= _FEW:
        sums = (log_probs.view(sentences, width, vocab) + so_far[:, :, None]).flatten(1)
        highest, place = sums.topk(min(count, width * vocab), dim=1)
        row = place.div(vocab, rounding_mode="floor")
        return highest, row, place - row * vocab, log_probs.view(sentences, -1).gather(1, place)
    whole = blocks * _BLOCK
    blocked = log_probs[:, :whole].view(sentences, width, blocks, _BLOCK)
    maxima = (blocked.amax(dim=-1) + so_far[:, :, None]).flatten(1)  # (B, width · blocks)
    chosen = maxima.topk(count, dim=1, sorted=False).indices
    row = chosen.div(blocks, rounding_mode="floor")
    block = chosen - row * blocks
    near = blocked[torch.arange(sentences, device=row.device)[:, None], row, block]  # (B, count, _BLOCK)
    if whole < vocab:  # the rest of each row is one more block, and looked into in any case
        rest = F.pad(log_probs[:, whole:], (0, whole + _BLOCK - vocab), value=-torch.inf)
        near = torch.cat((near, rest.view(sentences, width, _BLOCK)), dim=1)
        row = torch.cat((row, torch.arange(width, device=row.device).expand(sentences, -1)), dim=1)
        block = torch.cat((block, block.new_full((sentences, width), blocks)), dim=1)
    sums = near + so_far.gather(1, row)[:, :, None]
    highest, place = sums.flatten(1).topk(count, dim=1)
    slot = place.div(_BLOCK, rounding_mode="floor")
    tokens = (block.gather(1, slot) - slot).mul_(_BLOCK).add_(place)
    return highest, row.gather(1, slot), tokens, near.flatten(1).gather(1, place)
