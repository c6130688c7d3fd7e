"""Multi-head attention: the paper's section 3.2.2."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.attention import Attention, fast_attention, scaled_dot_product_attention, with_causal_mask
from headwise.nn.cache import NO_CACHE, KeyValueCache
from headwise.nn.positions import NoRotation, RotaryPositions


class MultiHeadAttention(Attention):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_H) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)."""

    def __init__(
        self, model_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *,
        head_dim: int | None = None, scale: float | None = None, rotary: RotaryPositions | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if model_dim < 1 or num_heads < 1 or (head_dim is None and model_dim % num_heads):
            raise ShapeError(f"num_heads ({num_heads}) must divide model_dim ({model_dim})")
        self.model_dim, self.num_heads, self.head_dim = model_dim, num_heads, head_dim or model_dim // num_heads
        self.dropout, self.scale, self.rotary = dropout, scale, rotary or NoRotation()
        inner = num_heads * self.head_dim
        self.query_key_value = nn.Linear(model_dim, 3 * inner, bias=bias)
        self.output = nn.Linear(inner, model_dim, bias=bias)
        initialise(self)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None, *,
        bias: Tensor | None = None, causal: bool = False, past: KeyValueCache | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, T, D), (B, S, D), (B, S, D) -> (B, T, D). `allowed` is (T, S), (B, T, S) or (B, H, T, S), broadcast."""
        check_inputs(query, key, value, self.model_dim)
        cache = past or NO_CACHE
        q, k, v = self.project(query, key, value)
        q, k = self.rotary.rotate(q, cache.length), self.rotary.rotate(k, cache.length)
        k, v = cache.append(k, v)
        return self.attend(q, k, v, allowed, bias=bias, causal=causal)

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        """Projects the three inputs into the heads' subspaces, (B, H, length, K) each; equal inputs by one matmul."""
        if query is key and key is value:
            return self.heads(query, 0, 3)
        if key is value:
            return *self.heads(query, 0, 1), *self.heads(key, 1, 3)
        return *self.heads(query, 0, 1), *self.heads(key, 1, 2), *self.heads(value, 2, 3)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *,
        bias: Tensor | None = None, causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Computes attention in each head, concatenates the heads and projects: (B, H, T, K) … -> (B, T, D)."""
        allowed = allowed[:, None] if allowed is not None and allowed.dim() == 3 else allowed  # one mask for all heads
        rate = self.dropout if self.training else 0.0
        heads = fast_attention(q, k, v, allowed, bias=bias, causal=causal, rate=rate, scale=self.scale)
        if (observer := self.observer) is not None:
            seen = with_causal_mask(allowed, q, k) if causal else allowed
            observer(lambda: (scaled_dot_product_attention(q, k, v, seen, bias=bias, scale=self.scale)[1], seen))
        joined: Tensor = self.output(heads.transpose(1, 2).flatten(2))  # (B, H, T, K) -> (B, T, H·K) -> (B, T, D)
        return joined

    def heads(self, x: Tensor, first: int, last: int) -> tuple[Tensor, ...]:
        """Computes projections first…last of (query, key, value) in one matmul, split into heads: (B, H, T, K) each."""
        return split_heads(x, self.query_key_value, self.num_heads, first, last, self.rotary.rotates)

    def new_cache(self) -> KeyValueCache:
        return KeyValueCache()


def initialise(attention: MultiHeadAttention) -> None:
    """Initialises each of the four projections by itself (Xavier), although three share a matrix; biases are zero."""
    for matrix in (*attention.query_key_value.weight.chunk(3), attention.output.weight):
        nn.init.xavier_uniform_(matrix)
    for name, bias in attention.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(bias)


def split_heads(
    x: Tensor, projections: nn.Linear, num_heads: int, first: int, last: int, key_bias: bool = False
) -> tuple[Tensor, ...]:
    """Computes projections first…last of the three that stand one below the other: (B, H, T, K) each.

    Unless `key_bias`, the bias of the keys is not trained. It shifts all scores of a query equally, which softmax
    cancels (but for rotated keys). So its gradient is zero except for rounding errors, which Adam would turn into steps
    of full size.
    """
    size, bias = projections.out_features // 3, None
    if projections.bias is not None:
        query, key, value = projections.bias.chunk(3)
        bias = torch.cat((query, key if key_bias else key.detach(), value)[first:last])
    projected = F.linear(x, projections.weight[first * size : last * size], bias)
    split = projected.view(*x.shape[:2], last - first, num_heads, -1)  # (B, T, projections, H, K)
    return tuple(split.permute(2, 0, 3, 1, 4).unbind(0))


def check_inputs(query: Tensor, key: Tensor, value: Tensor, model_dim: int) -> None:
    """Raises a ShapeError if the inputs do not fit together."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 3 or x.size(-1) != model_dim:
            raise ShapeError(f"{name} must be (batch, length, {model_dim}), not {tuple(x.shape)}")
    if key.size(1) != value.size(1):
        raise ShapeError(f"key and value must have the same length, not {key.size(1)} and {value.size(1)}")
