"""From logits to the likeliest tokens and their log-probabilities, touching the (rows, V) numbers little.

A top-k over a whole vocabulary costs a good part of a small model's step. A maximum without its place is some ten times
as fast, so the vocabulary is cut into blocks, and only the blocks with the highest maxima are looked into.
"""

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = 128


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
    if blocks <= 2 * count:
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
