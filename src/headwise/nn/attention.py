"""Attention: the paper's section 3.2. The equation, a fast version of it, and the base class of all kinds of attention.

Each kind of attention is a subclass of `Attention` in a file of its own, such as `multi_head.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.cache import Cache
from headwise.nn.kernels.dropout import runs_here
from headwise.nn.kernels.dropped_attention import dropped_attention
from headwise.nn.masks import causal_mask

# Called after each attention with a function that computes its weights, (B, H, T, S), and what may attend, which
# broadcasts to them; None: everything.
Observer = Callable[[Callable[[], tuple[Tensor, Tensor | None]]], None]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Equation 1: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.

    This is the reference that every other path is tested against. Inputs may have any leading axes; `allowed` (True =
    may attend) and `bias` (added to the scores) broadcast to (…, T, S); `scale` replaces 1/√d_k. Returns the output
    (…, T, K) and the weights (…, T, S).
    """
    # If q and k have independent entries of variance 1, q·k has variance d_k: unscaled, it would saturate the softmax.
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)  # (…, T, S)
    weights = masked_softmax(scores if bias is None else scores + bias, allowed)
    return weights @ value, weights


def masked_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Computes softmax over the allowed entries of the last axis; a row without any is all zeros, not NaN."""
    if allowed is None:
        return scores.softmax(dim=-1)
    # The most negative number instead of -inf keeps an empty row and its gradient finite; the second fill zeroes it. In
    # all other rows its exp() is exactly 0, as with -inf.
    weights = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=-1)
    return weights.masked_fill(~allowed, 0.0)


def fast_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    rate: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """Computes the output of the reference with a fused kernel. Tensors are (B, H, T, K).

    With `causal` each of the T queries sees itself and what is before it; the last query is at the position of the last
    key. `rate` is the dropout on the weights.
    """
    if causal and allowed is None and bias is None and not rate and query.size(-2) == key.size(-2):
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)
    allowed = with_causal_mask(allowed, query, key) if causal else allowed
    if rate and runs_here(query):
        return dropped_attention(query, key, value, allowed, rate, bias, scale)
    mask = allowed if bias is None else bias if allowed is None else bias.masked_fill(~allowed, -torch.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=rate, scale=scale)


def with_causal_mask(allowed: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """Combines `allowed` with the causal mask, which hides each query's future."""
    length, keys = query.size(-2), key.size(-2)
    if length == 1:  # a single query is the newest token and sees everything
        return allowed
    seen = causal_mask(length, past=keys - length, device=query.device)
    return seen if allowed is None else allowed & seen


class Attention(nn.Module):
    """Base class of all kinds of attention.

    Called as `attention(query, key, value, allowed, bias=…, causal=…, past=…)`: (B, T, D), (B, S, D), (B, S, D) ->
    (B, T, D). `past` is a cache from `new_cache`, for decoding token by token.
    """

    observer: Observer | None = None  # set by `capture_attention`

    def new_cache(self) -> Cache:
        """Creates an empty cache for a new sequence."""
        raise ShapeError(f"{type(self).__name__} has no cache: it cannot decode token by token")


class AdditiveAttention(nn.Module):
    """score(q, k) = v · tanh(W q + U k): the alternative that section 3.2.1 compares with (Bahdanau et al. 2015).

    Called like `scaled_dot_product_attention` and returns the same pair.
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key = nn.Linear(key_dim, hidden_dim)
        self.score = nn.Linear(hidden_dim, 1, bias=False)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        weights = masked_softmax(self.scores(query, self.key(key)), allowed)  # (…, T, S)
        return weights @ value, weights

    def scores(self, query: Tensor, projected_key: Tensor) -> Tensor:
        """For queries (…, T, query_dim) and `self.key(key)`, which a decoder computes once per sentence: (…, T, S)."""
        hidden = torch.tanh(self.query(query)[..., :, None, :] + projected_key[..., None, :, :])  # (…, T, S, hidden)
        scores: Tensor = self.score(hidden).squeeze(-1)
        return scores
