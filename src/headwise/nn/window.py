"""Attention within a sliding window, with tokens that see everything: Longformer.

Beltagy et al. 2020 (arXiv 2004.05150). A token sees `window` / 2 tokens on either side of it, itself, and all global
tokens. A global token sees the whole text, through projections of its own. Time and memory grow with T · window
instead of T².
"""

from __future__ import annotations

from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.attention import fast_attention, masked_softmax, scaled_dot_product_attention
from headwise.nn.cache import KeyValueCache, WindowCache
from headwise.nn.kernels.windows import windows
from headwise.nn.multi_head import MultiHeadAttention, check_inputs, split_heads

_SMALLEST_BLOCK = 32  # queries that are computed together: smaller products waste a core's time


class WindowPattern:
    """Which tokens of a batch are real, and which are global. All layers share what follows from it."""

    def __init__(self, real: Tensor | None = None, global_tokens: Tensor | None = None) -> None:
        """Both are (B, T), True where there is such a token; None: all are real, none is global."""
        self.real = real
        if global_tokens is not None and real is not None:
            global_tokens = global_tokens & real
        self.global_tokens = global_tokens if global_tokens is not None and bool(global_tokens.any()) else None
        known = real if real is not None else self.global_tokens
        self.device = None if known is None else known.device
        self._masks: dict[tuple[int, int, int, bool], Tensor] = {}

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """Where each row's global tokens are, (B, G), and which of these entries are not padding, (B, G)."""
        assert self.global_tokens is not None
        counts = self.global_tokens.sum(dim=1)
        most = int(counts.max())
        places = self.global_tokens.int().argsort(dim=1, descending=True, stable=True)[:, :most]
        return places, torch.arange(most, device=counts.device) < counts[:, None]

    def dense(self, length: int, side: int, causal: bool = False) -> Tensor:
        """(B, 1, T, T) or (1, 1, T, T): which pairs may meet. The definition, for reference and for looking."""
        place = torch.arange(length, device=self.device)
        near = (place[:, None] - place).abs() <= side
        allowed = near[None] & (place <= place[:, None]) if causal else near[None]  # (1, T, T)
        if self.global_tokens is not None:
            allowed = allowed | self.global_tokens[:, None, :] | self.global_tokens[:, :, None]
        if self.real is not None:
            allowed = allowed & self.real[:, None, :] & self.real[:, :, None]
        return allowed[:, None]

    def blocks(self, shape: tuple[int, int], side: int, block: int, causal: bool) -> Tensor:
        """The same in blocks: (B · blocks, 1, block, G + block + 2 · side). Global keys stand before each window."""
        key = (*shape, side, causal)
        if key not in self._masks:
            self._masks[key] = self._blocks(shape, side, block, causal)
        return self._masks[key]

    def _blocks(self, shape: tuple[int, int], side: int, block: int, causal: bool) -> Tensor:
        rows, length = shape
        count = -(-length // block)
        numbers = torch.arange(max(count, block + 2 * side), device=self.device)
        query, key = numbers[:block, None], numbers[: block + 2 * side] - side  # places within a block
        near = (key >= query - side) & (key <= (query if causal else query + side))  # (block, size)
        place = numbers[:count, None] * block + key  # (count, size)
        inside = (place >= 0) & (place < length)
        allowed = (near & inside[:, None])[None]  # (1, count, block, size)
        ordinary = self.real if self.global_tokens is None else ~self.global_tokens
        if ordinary is not None:
            ordinary = ordinary if self.real is None else ordinary & self.real
            allowed = allowed & ordinary[:, place.clamp(0, length - 1)][:, :, None]
        if self.global_tokens is not None:  # they are seen by all, and counted once: not in windows too
            everywhere = self.places[1][:, None, None].expand(-1, count, block, -1)
            allowed = torch.cat((everywhere, allowed), dim=-1)
        if self.real is not None:
            allowed = allowed & F.pad(self.real, (0, count * block - length)).view(-1, count, block, 1)
        return allowed.expand(rows, -1, -1, -1).flatten(0, 1)[:, None]


class WindowAttention(MultiHeadAttention):
    """Self-attention of which each query sees `window` / 2 tokens on either side, and the global tokens.

    `allowed` may only hide padding: (B, 1, 1, T). With `causal` it looks back only, and there are no global tokens.
    """

    def __init__(
        self, model_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *, window: int,
        global_tokens: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(model_dim, num_heads, dropout, bias)
        if window < 2 or window % 2:
            raise ShapeError(f"a window must be an even number of tokens from 2, half on either side, not {window}")
        self.side = window // 2
        self.global_query_key_value = nn.Linear(model_dim, 3 * model_dim, bias=bias) if global_tokens else None
        if self.global_query_key_value is not None:
            for matrix in self.global_query_key_value.weight.chunk(3):
                nn.init.xavier_uniform_(matrix)
            if bias:
                nn.init.zeros_(self.global_query_key_value.bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None, *,
        bias: Tensor | None = None, causal: bool = False, past: KeyValueCache | None = None,
        pattern: WindowPattern | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, T, D) three times -> (B, T, D). `pattern`, which has the padding too, stands in for `allowed`."""
        check_self_attention(query, key, value, self.model_dim, bias)
        pattern = pattern or WindowPattern(padding_of(allowed))
        if pattern.global_tokens is not None and (causal or self.global_query_key_value is None):
            raise ShapeError("global tokens see the whole text: not with causal=True or global_tokens=False")
        q, k, v = self.heads(query, 0, 3)  # (B, H, T, K)
        if past is not None:
            return self._step(q, k, v, past, causal)
        rate = self.dropout if self.training else 0.0
        heads = window_attention(q, k, v, self.side, pattern, causal=causal, rate=rate, scale=self.scale)
        joined = heads.transpose(1, 2).flatten(2)  # (B, T, H·K)
        if pattern.global_tokens is not None:
            seen = self._global_rows(query, pattern, rate)  # (B, G, H·K)
            joined = joined.index_put(pattern.global_tokens.nonzero(as_tuple=True), seen[pattern.places[1]])
        if (observer := self.observer) is not None:
            observer(lambda: self.weights(query, pattern, causal))
        out: Tensor = self.output(joined)
        return out

    def _global_rows(self, x: Tensor, pattern: WindowPattern, rate: float) -> Tensor:
        """What the global tokens see: (B, T, D) -> (B, G, H·K)."""
        places, _ = pattern.places
        (q,) = self._global_heads(x.take_along_dim(places[:, :, None], dim=1), 0, 1)
        k, v = self._global_heads(x, 1, 3)
        real = None if pattern.real is None else pattern.real[:, None, None]
        return fast_attention(q, k, v, real, rate=rate, scale=self.scale).transpose(1, 2).flatten(2)

    def _global_heads(self, x: Tensor, first: int, last: int) -> tuple[Tensor, ...]:
        assert self.global_query_key_value is not None
        return split_heads(x, self.global_query_key_value, self.num_heads, first, last)

    def _step(self, q: Tensor, k: Tensor, v: Tensor, past: KeyValueCache, causal: bool) -> Tensor:
        """The newest tokens after those of the cache."""
        if not causal:
            raise ShapeError("decoding token by token looks back only: pass causal=True")
        k, v = past.append(k, v)
        length, keys = q.size(2), k.size(2)
        place = torch.arange(keys - length, keys, device=q.device)[:, None]
        near = torch.arange(keys, device=q.device) >= place - self.side
        return self.attend(q, k, v, near, causal=True)

    def weights(self, x: Tensor, pattern: WindowPattern, causal: bool = False) -> tuple[Tensor, Tensor]:
        """All weights, zeros included, (B, H, T, T), and which pairs may meet: the slow way, by a dense mask."""
        q, k, v = self.heads(x, 0, 3)
        allowed = pattern.dense(x.size(1), self.side, causal).to(x.device)
        _, found = scaled_dot_product_attention(q, k, v, allowed, scale=self.scale)
        if pattern.global_tokens is None:
            return found, allowed
        q, k, _ = self._global_heads(x, 0, 3)
        scores = q @ k.mT * (self.head_dim**-0.5 if self.scale is None else self.scale)
        return torch.where(pattern.global_tokens[:, None, :, None], masked_softmax(scores, allowed), found), allowed

    def new_cache(self) -> KeyValueCache:
        return WindowCache(self.side)


def window_attention(
    query: Tensor, key: Tensor, value: Tensor, side: int, pattern: WindowPattern, *, causal: bool = False,
    rate: float = 0.0, scale: float | None = None,
) -> Tensor:  # fmt: skip
    """Ordinary queries, (B, H, T, K) three times -> (B, H, T, K); equals dense attention with `pattern.dense`.

    A block of queries and the window around it are one small dense attention: (B · blocks, H, block, K) against
    (B · blocks, H, G + block + 2 · side, K).
    """
    rows, _, length, _ = query.shape
    block = max(side, min(_SMALLEST_BLOCK, length))
    missing = -length % block
    q, k, v = (F.pad(x, (0, 0, 0, missing)) if missing else x for x in (query, key, value))
    count = q.size(2) // block
    near_k, near_v = windows(k, block, side), windows(v, block, side)
    if pattern.global_tokens is not None:
        places = pattern.places[0][:, None, :, None]
        k, v = (x.take_along_dim(places, dim=2)[:, None].expand(-1, count, -1, -1, -1).flatten(0, 1) for x in (k, v))
        near_k, near_v = torch.cat((k, near_k), dim=2), torch.cat((v, near_v), dim=2)
    q = q.transpose(1, 2).reshape(rows * count, block, *q.shape[1::2]).transpose(1, 2)  # (B · blocks, H, block, K)
    allowed = pattern.blocks((rows, length), side, block, causal).to(q.device)
    heads = fast_attention(q, near_k, near_v, allowed, rate=rate, scale=scale)
    return heads.transpose(1, 2).reshape(rows, count * block, *heads.shape[1::2])[:, :length].transpose(1, 2)


def check_self_attention(query: Tensor, key: Tensor, value: Tensor, model_dim: int, bias: Tensor | None) -> None:
    """Raises a ShapeError for what attention of a fixed pattern cannot do."""
    check_inputs(query, key, value, model_dim)
    if not (query is key and key is value):
        raise ShapeError("sparse attention is self-attention: pass one tensor three times")
    if bias is not None:
        raise ShapeError("sparse attention adds no bias to its scores")


def padding_of(allowed: Tensor | None) -> Tensor | None:
    """(B, 1, 1, T) -> (B, T)."""
    if allowed is None:
        return None
    if allowed.dim() != 4 or allowed.shape[1:3] != (1, 1):
        raise ShapeError(f"sparse attention takes a mask of padding, (B, 1, 1, T), not {tuple(allowed.shape)}")
    return allowed[:, 0, 0]
