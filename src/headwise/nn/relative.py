"""Attention by relative distance: Transformer-XL (Dai et al. 2019, arXiv 1901.02860, section 3.3).

    score(t, s) = ((q_t + u)·k_s + (q_t + v)·W_r R_{t-s}) / √K

R_d is the sinusoid of distance d. Nothing in a score depends on where the text begins, so a segment can look back at
the segments before it. u and v stand for the query's own position: what is attended to wherever the query is.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.attention import masked_softmax, scaled_dot_product_attention
from headwise.nn.cache import NO_CACHE, KeyValueCache, WindowCache
from headwise.nn.dropout import Dropout
from headwise.nn.kernels.distance_attention import distance_attention, scores_by_distance
from headwise.nn.kernels.dropout import runs_here
from headwise.nn.masks import causal_mask
from headwise.nn.multi_head import MultiHeadAttention, check_inputs
from headwise.nn.positions import sinusoidal_positions

_FIRST_LENGTH = 512
_DEVIATION = 0.02  # of u and v at first, as in the original code


class RelativePositions(nn.Module):
    """Sinusoids of distances, and the biases u and v, which all layers may share."""

    table: Tensor

    def __init__(
        self, model_dim: int, num_heads: int, head_dim: int, *, clamp: int | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.model_dim, self.clamp, self.dropout = model_dim, clamp, Dropout(dropout)
        self.content_bias = nn.Parameter(torch.empty(num_heads, head_dim))  # u
        self.position_bias = nn.Parameter(torch.empty(num_heads, head_dim))  # v
        for bias in (self.content_bias, self.position_bias):
            nn.init.normal_(bias, std=_DEVIATION)
        self.register_buffer("table", _in_halves(_FIRST_LENGTH, model_dim), persistent=False)

    def forward(self, length: int) -> Tensor:
        """R for distances length - 1 … 0, (length, D). Distances beyond `clamp` count as `clamp`."""
        longest = length if self.clamp is None else min(length, self.clamp + 1)
        table = self.table
        if longest > table.size(0):
            table = self.table = _in_halves(max(longest, 2 * table.size(0)), self.model_dim).to(table)
        distances = torch.arange(length - 1, -1, -1, device=table.device).clamp(max=longest - 1)
        found: Tensor = self.dropout(table[distances])
        return found


def _in_halves(length: int, model_dim: int) -> Tensor:
    """Sinusoids with all sines before all cosines, as the original code has them."""
    pairs = sinusoidal_positions(length, model_dim)
    return torch.cat((pairs[:, 0::2], pairs[:, 1::2]), dim=1)


class RelativeAttention(MultiHeadAttention):
    """Multi-head attention whose scores depend on distances. Each query sees itself and what is before it.

    `positions` are its own, or given with each call where layers share them. `past` may be a `SegmentMemory` (training:
    inputs of earlier segments) or what `new_cache` makes (decoding), which looks back `memory` tokens.
    """

    def __init__(
        self, model_dim: int, num_heads: int, dropout: float = 0.0, *, positions: RelativePositions | None = None,
        memory: int = 0, head_dim: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(model_dim, num_heads, dropout, bias=False, head_dim=head_dim)
        self.positions, self.memory = positions, memory
        self.distance_key = nn.Linear(model_dim, num_heads * self.head_dim, bias=False)  # W_r
        nn.init.xavier_uniform_(self.distance_key.weight)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None, *,
        bias: Tensor | None = None, causal: bool = False, past: KeyValueCache | None = None,
        positions: RelativePositions | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, T, D) three times -> (B, T, D). The T queries are the newest of all tokens, `past` included."""
        check_inputs(query, key, value, self.model_dim)
        if not (causal and query is key and key is value):
            raise ShapeError("relative attention is causal self-attention: pass one tensor three times, causal=True")
        known = self.positions or positions
        if known is None:
            raise ShapeError("relative attention needs positions: its own, or positions=… with each call")
        if bias is not None:
            raise ShapeError("relative attention adds no bias to its scores but that of distances")
        cache = past or NO_CACHE
        (q,) = self.heads(query, 0, 1)
        k, v = self.heads(cache.join(key), 1, 3)
        k, v = cache.append(k, v)  # (B, H, S, K)
        content, place = (
            (q + vector[:, None]) * self.head_dim**-0.5 for vector in (known.content_bias, known.position_bias)
        )
        distance_keys = self._distance_keys(known, k.size(2), past)
        seen = causal_mask(q.size(2), past=k.size(2) - q.size(2), device=q.device)[None, None]
        if allowed is not None:
            seen = seen & (allowed[:, None] if allowed.dim() == 3 else allowed)
        rate = self.dropout if self.training else 0.0

        def weights() -> Tensor:
            return masked_softmax(scores_by_distance(content, place, k, distance_keys), seen)

        if runs_here(query):
            heads = distance_attention(content, place, k, v, distance_keys, seen, rate)
        else:
            heads = F.dropout(weights(), rate) @ v
        if (observer := self.observer) is not None:
            observer(lambda: (weights(), seen))
        out: Tensor = self.output(heads.transpose(1, 2).flatten(2))
        return out

    def _distance_keys(self, positions: RelativePositions, length: int, past: KeyValueCache | None) -> Tensor:
        """W_r R for distances length - 1 … 0, (H, length, K). While decoding, they are computed once."""
        kept = past.distance_keys if isinstance(past, _DecodingCache) else None
        if kept is None or kept.size(1) < length:
            longest = length if kept is None else 2 * length
            projected = self.distance_key(positions(longest)).view(longest, self.num_heads, -1)
            kept = projected.transpose(0, 1)  # (H, longest, K)
            if isinstance(past, _DecodingCache):
                past.distance_keys = kept
        return kept[:, kept.size(1) - length :]

    def new_cache(self) -> KeyValueCache:
        """For decoding: keys and values of the last `memory` tokens."""
        return _DecodingCache(self.memory)


class _DecodingCache(WindowCache):
    """Also keeps what depends on the weights alone."""

    distance_keys: Tensor | None = None


def relative_attention(
    query: Tensor, key: Tensor, value: Tensor, distance_keys: Tensor, content_bias: Tensor, position_bias: Tensor,
    allowed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The equation itself, pair by pair: the reference that `RelativeAttention` is tested against.

    query (B, H, T, K), key and value (B, H, S, K), distance_keys (H, S, K) with W_r R_d in row d, biases (H, K).
    Returns the output (B, H, T, K) and the weights (B, H, T, S).
    """
    length, keys = query.size(2), key.size(2)
    places = torch.arange(keys - length, keys, device=query.device)[:, None]
    distances = places - torch.arange(keys, device=query.device)  # (T, S)
    found = distance_keys[:, distances.clamp(min=0)]  # (H, T, S, K)
    by_distance = torch.einsum("bhtk,htsk->bhts", query + position_bias[:, None], found) * query.size(3) ** -0.5
    seen = distances >= 0 if allowed is None else allowed & (distances >= 0)
    return scaled_dot_product_attention(query + content_bias[:, None], key, value, seen, bias=by_distance)
