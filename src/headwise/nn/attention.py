"""Attention: the paper's section 3.2. The equation first, then the same thing fast, then many heads of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.cache import KeyValueCache
from headwise.nn.dropped_attention import dropped_attention
from headwise.nn.masks import causal_mask
from headwise.nn.positions import RotaryPositions

# Called with queries, keys, values (B, H, length, K), the mask, and whether attention is causal.
Observer = Callable[[Tensor, Tensor, Tensor, Tensor | None, bool], None]


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Equation 1: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.

    The reference: every other path is tested against it. Any leading axes; `allowed` broadcasts to (…, T, S). Returns
    the output (…, T, K) and the weights (…, T, S).
    """
    # Where q and k have independent entries of variance 1, q·k has variance d_k: large scores would leave softmax flat.
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (…, T, S)
    weights = masked_softmax(scores, allowed)
    return weights @ value, weights


def masked_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the last axis among the allowed; a row that may attend to nothing is all zeros, never NaN."""
    if allowed is None:
        return scores.softmax(dim=-1)
    # The most negative number instead of -inf: an empty row then has finite values (and gradients), and the second
    # fill makes it zero. In any other row exp() of it is exactly 0, as with -inf.
    weights = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=-1)
    return weights.masked_fill(~allowed, 0.0)


def fast_attention(
    query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None, *, causal: bool = False, rate: float = 0.0
) -> Tensor:
    """The output of the reference, by PyTorch's fused kernel. Tensors are (B, H, T, K).

    `causal` lets each of the T queries see itself and what is before it, the last query being the last key. `rate` is
    the dropout on the weights.
    """
    if causal:
        length, keys = query.size(-2), key.size(-2)
        if allowed is None and not rate and length == keys:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True)
        if length > 1:  # a single query is the newest token and sees everything
            seen = causal_mask(length, past=keys - length, device=query.device)
            allowed = seen if allowed is None else allowed & seen
    if rate and query.device.type == "cpu" and not torch.compiler.is_compiling():
        return dropped_attention(query, key, value, allowed, rate)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=rate)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_H) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    The H projections of each kind are one matrix, split afterwards; for self-attention all three kinds are one matmul.
    """

    # Set by `capture_attention`; sees what each call attends with.
    observer: Observer | None = None

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        rotary: RotaryPositions | None = None,
    ) -> None:
        super().__init__()
        if model_dim < 1 or num_heads < 1 or model_dim % num_heads:
            raise ShapeError(f"num_heads ({num_heads}) must divide model_dim ({model_dim})")
        self.model_dim, self.num_heads, self.dropout, self.rotary = model_dim, num_heads, dropout, rotary
        self.query_key_value = nn.Linear(model_dim, 3 * model_dim, bias=bias)
        self.output = nn.Linear(model_dim, model_dim, bias=bias)
        # Xavier for each D × D map, not for the stack of three.
        for matrix in (*self.query_key_value.weight.chunk(3), self.output.weight):
            nn.init.xavier_uniform_(matrix)
        for linear in (self.query_key_value, self.output) if bias else ():
            nn.init.zeros_(linear.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        allowed: Tensor | None = None,
        *,
        causal: bool = False,
        past: KeyValueCache | None = None,
    ) -> Tensor:
        """(B, T, D), (B, S, D), (B, S, D) -> (B, T, D). `allowed` is (T, S), (B, T, S) or (B, H, T, S), broadcast."""
        _check_inputs(query, key, value, self.model_dim)
        q, k, v = self.project(query, key, value)
        if self.rotary is not None:
            start = past.length if past is not None else 0
            q, k = self.rotary.rotate(q, start), self.rotary.rotate(k, start)
        if past is not None:
            k, v = past.append(k, v)
        return self.attend(q, k, v, allowed, causal=causal)

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The three inputs in the heads' own spaces, (B, H, length, K) each; one matmul where inputs are the same."""
        if query is key and key is value:
            q, k, v = self._heads(query, 0, 3)
            return q, k, v
        if key is value:
            return self.queries(query), *self.keys_values(key)
        return self.queries(query), self._heads(key, 1, 2)[0], self._heads(value, 2, 3)[0]

    def queries(self, x: Tensor) -> Tensor:
        return self._heads(x, 0, 1)[0]

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of cross-attention: they stay the same for a whole translation."""
        k, v = self._heads(memory, 1, 3)
        return k, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """Attention in each head, heads joined, output projection: (B, H, T, K) … -> (B, T, D)."""
        if allowed is not None and allowed.dim() == 3:
            allowed = allowed[:, None]  # (B, T, S) -> (B, 1, T, S)
        heads = fast_attention(q, k, v, allowed, causal=causal, rate=self.dropout if self.training else 0.0)
        if self.observer is not None:
            self.observer(q, k, v, allowed, causal)
        joined: Tensor = self.output(heads.transpose(1, 2).flatten(2))  # (B, H, T, K) -> (B, T, H·K) -> (B, T, D)
        return joined

    def _heads(self, x: Tensor, first: int, last: int) -> tuple[Tensor, ...]:
        """Projections first…last of (query, key, value) in one matmul, split into heads."""
        rows = slice(first * self.model_dim, last * self.model_dim)
        projected = F.linear(x, self.query_key_value.weight[rows], self._bias(first, last))  # (B, T, kinds · D)
        split = projected.view(*x.shape[:2], last - first, self.num_heads, -1)  # (B, T, kinds, H, K)
        heads: tuple[Tensor, ...] = split.permute(2, 0, 3, 1, 4).unbind(0)  # kinds × (B, H, T, K)
        return heads

    def _bias(self, first: int, last: int) -> Tensor | None:
        """Those of the projections first…last; the keys' does not learn.

        It moves all keys of a query alike, which softmax does not see: its gradient is zero but for rounding, and Adam
        would make steps of full size out of that. Positions that rotate keys turn it into something that is seen.
        """
        bias = self.query_key_value.bias
        if bias is None or self.rotary is not None:
            return None if bias is None else bias[first * self.model_dim : last * self.model_dim]
        query, key, value = bias.chunk(3)
        return torch.cat((query, key.detach(), value)[first:last])


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, model_dim: int) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 3 or x.size(-1) != model_dim:
            raise ShapeError(f"{name} must be (batch, length, {model_dim}), not {tuple(x.shape)}")
    if key.size(1) != value.size(1):
        raise ShapeError(f"key and value must have the same length, not {key.size(1)} and {value.size(1)}")


class AdditiveAttention(nn.Module):
    """score(q, k) = v · tanh(W q + U k): the alternative that section 3.2.1 weighs (Bahdanau et al. 2015).

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
        hidden = torch.tanh(self.query(query)[..., :, None, :] + self.key(key)[..., None, :, :])  # (…, T, S, hidden)
        weights = masked_softmax(self.score(hidden).squeeze(-1), allowed)  # (…, T, S)
        return weights @ value, weights
