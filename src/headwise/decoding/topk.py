"""From states to the likeliest tokens and their log-probabilities.

A top-k over a whole vocabulary costs a good part of a small model's step. A maximum without its place is some ten times
as fast, so where there are many numbers the vocabulary is cut into blocks, and only the blocks with the highest maxima
are looked into.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.decoding.interface import Halves

_BLOCKS = 64, 96, 128, 160, 192, 224, 256, 32  # the maximum of a multiple of 32 numbers is found three times as fast
# Numbers among which a plain top-k, or a plain maximum, is faster than blocks.
_FEW = 40_000
_FEW_FOR_ONE = 130_000


@dataclass
class NextTokens:
    """The last part of a step: states to logits of the next token and their log-probabilities, (rows, V) each.

    Both lie where those of the step before did.
    """

    model: Halves
    _logits: Tensor | None = None
    _log_probs: Tensor | None = None

    def __call__(self, states: Tensor) -> tuple[Tensor, Tensor]:
        count, logits = states.size(0), self.logits(states)
        if self._log_probs is None or self._log_probs.size(0) < count:
            self._log_probs = torch.log_softmax(logits, dim=-1)
            return logits, self._log_probs
        return logits, torch.log_softmax(logits, dim=-1, out=self._log_probs[:count])

    def logits(self, states: Tensor) -> Tensor:
        """Without their log-probabilities, which for the likeliest token are not needed."""
        count = states.size(0)
        if self._logits is None or self._logits.size(0) < count:
            self._logits = self.model.project(states)
            return self._logits
        return self.model.project(states, self._logits[:count])


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

    Exact: the `count` highest lie in the `count` blocks with the highest maxima.
    """
    vocab = logits.size(1)
    size = _block_size(vocab)
    if vocab <= 2 * count * size or logits.numel() <= (_FEW_FOR_ONE if count == 1 else _FEW):
        if count == 1:
            highest, tokens = logits.max(dim=-1, keepdim=True)
            return highest, tokens
        highest, tokens = logits.topk(min(count, vocab), dim=-1)
        return highest, tokens
    blocked = _in_blocks(logits, size)  # (rows, blocks, size)
    maxima = blocked.amax(dim=-1)  # (rows, blocks)
    chosen = maxima.topk(count, dim=-1, sorted=False).indices if count > 1 else maxima.argmax(dim=-1, keepdim=True)
    near = blocked.gather(1, chosen[:, :, None].expand(-1, -1, size)).flatten(1)  # (rows, count · size)
    highest, place = near.topk(count, dim=-1) if count > 1 else near.max(dim=-1, keepdim=True)
    slot = place.div(size, rounding_mode="floor")
    return highest, (chosen.gather(1, slot) - slot).mul_(size).add_(place)


def top_pairs(log_probs: Tensor, so_far: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The `count` best ways for a sentence to go on: (B · width, V), (B, width) -> four of (B, count), best first.

    They are the sum of log-probabilities with the new token, which of the sentence's rows goes on, the token, and its
    log-probability. Exact, as `top_tokens` is, but blocks are chosen among those of all rows of a sentence.
    """
    sentences, width = so_far.shape
    vocab = log_probs.size(1)
    size = _block_size(vocab)
    if width * vocab <= 2 * count * size or log_probs.numel() <= _FEW:
        sums = (log_probs.view(sentences, width, vocab) + so_far[:, :, None]).flatten(1)
        highest, place = sums.topk(min(count, width * vocab), dim=1)
        row = place.div(vocab, rounding_mode="floor")
        return highest, row, place - row * vocab, log_probs.view(sentences, -1).gather(1, place)
    blocked = _in_blocks(log_probs, size)  # (B · width, blocks, size)
    blocks = blocked.size(1)
    maxima = blocked.amax(dim=-1).view(sentences, width, blocks).add_(so_far[:, :, None]).view(sentences, -1)
    chosen = maxima.topk(count, dim=1, sorted=False).indices  # (B, count), of a sentence's width · blocks
    row = chosen.div(blocks, rounding_mode="floor")
    first = torch.arange(0, maxima.numel(), maxima.size(1), device=chosen.device)  # block of each sentence
    near = blocked.flatten(0, 1).index_select(0, chosen.add(first[:, None]).view(-1)).view(sentences, -1, size)
    sums = near + so_far.gather(1, row)[:, :, None]  # (B, count, size)
    highest, place = sums.view(sentences, -1).topk(count, dim=1)
    slot = place.div(size, rounding_mode="floor")
    tokens = (chosen.sub_(row * blocks).gather(1, slot) - slot).mul_(size).add_(place)
    return highest, row.gather(1, slot), tokens, near.view(sentences, -1).gather(1, place)


@lru_cache
def _block_size(vocab: int) -> int:
    """A size that leaves nothing after the last block, if there is one."""
    return next((size for size in _BLOCKS if vocab % size == 0), _BLOCKS[0])


def _in_blocks(numbers: Tensor, size: int) -> Tensor:
    """(rows, V) -> (rows, blocks, size), filled up with -inf."""
    missing = -numbers.size(1) % size
    return (F.pad(numbers, (0, missing), value=-torch.inf) if missing else numbers).view(numbers.size(0), -1, size)
