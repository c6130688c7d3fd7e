"""Attention in linear time by random features: FAVOR+ of the Performer (Choromanski et al. 2021, arXiv 2009.14794).

    exp(q·k) = E_w[φ_w(q) φ_w(k)],  φ_w(x) = exp(w·x - ‖x‖²/2),  w ~ N(0, I)

With `features` draws of w, softmax attention becomes φ(Q) (φ(K)ᵀ V): T · features · K products instead of T² · K. The
error falls as 1/√features; features that are orthogonal to each other make it smaller (section 2.4).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.cancellation import check_cancelled
from headwise.errors import ShapeError
from headwise.nn.attention import with_causal_mask
from headwise.nn.cache import KeyValueCache, NoCache
from headwise.nn.kernels.linear_attention import (
    EPSILON,
    NOTHING,
    RunningSums,
    advance,
    causal_linear_attention,
    linear_attention,
)
from headwise.nn.multi_head import MultiHeadAttention
from headwise.nn.window import check_self_attention, padding_of


def orthogonal_features(count: int, size: int) -> Tensor:
    """Draws W, (count, size): rows orthogonal in blocks of `size`, with the norms of Gaussian vectors."""
    blocks = []
    for _ in range(-(-count // size)):
        q, r = torch.linalg.qr(torch.randn(size, size))
        blocks.append(q * r.diagonal().sign())  # the signs make the directions uniform (Mezzadri 2007)
    norms: Tensor = torch.linalg.vector_norm(torch.randn(count, size), dim=1, keepdim=True)
    return torch.cat(blocks)[:count] * norms


class FavorCache(NoCache):
    """Running sums: decoding takes the same time for every token, however long the text is."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = 1
        self.sums: RunningSums | None = None

    def reorder(self, indices: Tensor) -> None:
        if self.sums is not None:
            parts = (x.view(-1, self.heads, *x.shape[1:])[indices].flatten(0, 1) for x in vars(self.sums).values())
            self.sums = RunningSums(*parts)


class FavorAttention(MultiHeadAttention):
    """Multi-head self-attention by random features. `allowed` may only hide padding: (B, 1, 1, T).

    The features are drawn once and are the same for all heads; they are stored with the weights and are not trained.
    """

    def __init__(self, model_dim: int, num_heads: int, bias: bool = True, *, features: int) -> None:
        super().__init__(model_dim, num_heads, bias=bias)
        if features < 1:
            raise ShapeError(f"attention by random features needs at least 1 of them, not {features}")
        drawn = orthogonal_features(features, self.head_dim)
        self.projection = nn.Parameter(drawn, requires_grad=False)  # (features, K)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None, *,
        bias: Tensor | None = None, causal: bool = False, past: KeyValueCache | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, T, D) three times -> (B, T, D)."""
        check_self_attention(query, key, value, self.model_dim, bias)
        if past is not None and not causal:
            raise ShapeError("decoding token by token looks back only: pass causal=True")
        q, k, v = (x.flatten(0, 1) for x in self.heads(query, 0, 3))  # (B · H, T, K)
        real = padding_of(allowed)
        there = None if real is None else real[:, None, :, None].expand(-1, self.num_heads, -1, -1).flatten(0, 1)
        projection = self.projection.mT * self.head_dim**-0.25  # x' = x · K^-¼
        if isinstance(past, FavorCache):
            heads, past.sums = advance(q, k, v, projection, past.sums)
            past.heads, past.length = self.num_heads, past.length + query.size(1)
        else:
            heads = (causal_linear_attention if causal else linear_attention)(q, k, v, projection, there)
        if (observer := self.observer) is not None:
            shape = *query.shape[:1], self.num_heads, *query.shape[1:2], -1
            seen = with_causal_mask(allowed, query, key) if causal else allowed
            observer(lambda: (favor_weights(q, k, projection, there, causal).view(shape), seen))
        joined = heads.view(-1, self.num_heads, *heads.shape[1:]).transpose(1, 2).flatten(2)  # (B, T, H·K)
        out: Tensor = self.output(joined)
        return out

    def new_cache(self) -> FavorCache:
        return FavorCache()


def favor_weights(
    query: Tensor, key: Tensor, projection: Tensor, real: Tensor | None = None, causal: bool = False
) -> Tensor:
    """The weights that random features amount to, pair by pair: the reference, and what is looked at.

    (N, T, K) twice, projection (K, features) = √scale · Wᵀ, real (N, T, 1) -> (N, T, T).
    """
    q, k = (x @ projection - x.square().sum(dim=-1, keepdim=True) * (x.size(-1) ** -0.5 / 2) for x in (query, key))
    there = torch.ones_like(k[..., :1], dtype=torch.bool) if real is None else real
    top = k.amax(dim=-1).masked_fill(~there[..., 0], NOTHING)  # (N, T)
    highest = top.cummax(dim=-1).values if causal else top.amax(dim=-1, keepdim=True).expand_as(top)
    q = (q - q.amax(dim=-1, keepdim=True)).exp() + EPSILON  # (N, T, features)
    pairs = []
    for row in range(q.size(1)):  # what is constant for all keys of a query cancels
        check_cancelled()
        seen = there[..., 0].clone()
        if causal:
            seen[:, row + 1 :] = False
        exponent = (k - highest[:, row, None, None]).masked_fill(~seen[..., None], -torch.inf)
        pairs.append(((exponent.exp() + EPSILON) @ q[:, row, :, None])[..., 0] * seen)
    weights = torch.stack(pairs, dim=1)  # (N, T, T)
    sums = weights.sum(dim=-1, keepdim=True)
    return weights / sums.masked_fill(sums == 0, 1.0)  # where there is no key, all are 0
