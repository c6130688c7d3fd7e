"""Transformer-XL's attention, some rows of a batch at a time: the scores of a block stay in the cache of a core.

    softmax(q·k + shift(p·r)) V      q, p (T, K): queries with the biases u and v, scaled; r (S, K): keys of distances

Written out with whole tensors, training reads and writes a matrix of (B, H, T, S) some twenty times, half of them for
the shift alone. Here it is stored once, as weights, for the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.nn.kernels.dropout import apply_mask, draw_mask
from headwise.nn.kernels.dropped_attention import softmax_of_allowed
from headwise.nn.kernels.precision import in_float32

_BLOCK = 2**18  # scores that are computed together


@in_float32
def distance_attention(
    query: Tensor, place_query: Tensor, key: Tensor, value: Tensor, distance_keys: Tensor, allowed: Tensor, rate: float
) -> Tensor:
    """(B, H, T, K) twice, (B, H, S, K) twice, (H, S, K) -> (B, H, T, K).

    Row s of `distance_keys` is for distance S - 1 - s. Scores are not scaled here. `allowed` (B or 1, H or 1, T, S)
    hides what is after a query, whose distance has no key; `rate` is the dropout on the weights.
    """
    tensors = query, place_query, key, value, distance_keys
    found: Tensor = _DistanceAttention.apply(*tensors, allowed, rate)  # type: ignore[no-untyped-call]
    return found


class _DistanceAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, place_query: Tensor, key: Tensor, value: Tensor, distance_keys: Tensor,
        allowed: Tensor, rate: float,
    ) -> Tensor:  # fmt: skip
        weights = query.new_empty(*query.shape[:3], key.size(2))
        out = query.new_empty(*query.shape[:3], value.size(3))
        dropout, ctx.threshold, ctx.keep = draw_mask(weights, rate) if rate else (None, 0, 1.0)
        for rows in _blocks(weights):
            scores = scores_by_distance(query[rows], place_query[rows], key[rows], distance_keys)
            here = softmax_of_allowed(scores, allowed[rows] if len(allowed) > 1 else allowed)
            weights[rows] = here
            if dropout is not None:
                here = apply_mask(here, dropout[rows], ctx.threshold, ctx.keep)
            torch.matmul(here, value[rows], out=out[rows])
        ctx.save_for_backward(query, place_query, key, value, distance_keys, weights, dropout)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, place_query, key, value, distance_keys, weights, dropout = ctx.saved_tensors
        to_query, to_place, to_key, to_value = (torch.empty_like(x) for x in (query, place_query, key, value))
        to_distances = torch.zeros_like(distance_keys)
        for rows in _blocks(weights):
            grad, here = grads[0][rows], weights[rows]
            of_weights = grad @ value[rows].mT
            dropped = here
            if dropout is not None:
                dropped, of_weights = (
                    apply_mask(x, dropout[rows], ctx.threshold, ctx.keep) for x in (here, of_weights)
                )
            to_value[rows] = dropped.mT @ grad
            of_scores = torch._softmax_backward_data(of_weights, here, -1, here.dtype)
            to_query[rows] = of_scores @ key[rows]
            to_key[rows] = of_scores.mT @ query[rows]
            of_products = shifted_back(of_scores)
            to_place[rows] = of_products @ distance_keys
            to_distances += (of_products.mT @ place_query[rows]).sum(dim=0)
        return to_query, to_place, to_key, to_value, to_distances, None, None


def _blocks(weights: Tensor) -> Iterator[slice]:
    """Rows of the batch that are computed together."""
    size = max(1, _BLOCK // max(1, weights[0].numel()))
    return (slice(first, first + size) for first in range(0, len(weights), size))


def scores_by_distance(query: Tensor, place_query: Tensor, key: Tensor, distance_keys: Tensor) -> Tensor:
    """The scores, (B, H, T, S); undefined for keys after their query."""
    columns = F.pad(distance_keys, (0, 0, 1, 0))  # the column in front that `shifted` wants: products with a zero row
    return shifted(place_query @ columns.mT) + query @ key.mT


def shifted(products: Tensor) -> Tensor:
    """Moves products (…, T, 1 + S), whose column 1 + c is for distance S - 1 - c, to column s of query t: (…, T, S).

    Query t stands at key t + S - T, so its row is moved to the left by T - 1 - t columns. With one column more than
    keys, the flattened matrix read in rows of S begins each row one place earlier (the paper's appendix B): no element
    is copied. Columns after the query's own are undefined.
    """
    *batch, length, wider = products.shape
    return products.view(*batch, wider, length)[..., 1:, :].reshape(*batch, length, wider - 1)


def shifted_back(scores: Tensor) -> Tensor:
    """The transpose of `shifted`, without the column in front: gradients of scores -> of products, (…, T, S)."""
    *batch, length, keys = scores.shape
    wider = F.pad(scores.flatten(-2), (length, 0)).view(*batch, length, keys + 1)
    return wider[..., 1:]
