"""Relative positions as a bias on attention scores: T5 (Raffel et al. 2020, arXiv 1910.10683, section 2.1)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from headwise.errors import ShapeError


def relative_buckets(distances: Tensor, buckets: int = 32, max_distance: int = 128, two_sided: bool = True) -> Tensor:
    """Assigns each distance (key position minus query position) to one of the `buckets`; any shape, integers.

    Half of the buckets hold one distance each, the other half ever more of them, up to `max_distance`; the last holds
    all that is farther away. With `two_sided` keys before and after the query have half of the buckets each; otherwise
    keys after the query count as distance 0, since a causal mask hides them.
    """
    check_buckets(buckets, max_distance, two_sided)
    after = torch.zeros_like(distances)
    if two_sided:
        buckets //= 2
        after = (distances > 0) * buckets
        distances = distances.abs()
    else:
        distances = (-distances).clamp_min(0)
    exact = buckets // 2
    # log(0) is -inf, which no integer can hold; the near ones are replaced below anyway.
    logarithm = torch.log(distances.clamp_min(1).float() / exact) / math.log(max_distance / exact)
    far = (exact + (logarithm * (buckets - exact)).long()).clamp_max(buckets - 1)
    return after + torch.where(distances < exact, distances, far)


def check_buckets(buckets: int, max_distance: int, two_sided: bool) -> None:
    """Raises a ShapeError if distances cannot be divided into these buckets."""
    exact = buckets // 4 if two_sided else buckets // 2
    if exact < 1 or max_distance <= exact:
        raise ShapeError(
            f"{buckets} buckets with max_distance = {max_distance} are not possible: at least 4 buckets are needed, "
            "and max_distance must be more than half of them"
        )


class RelativeBias(nn.Module):
    """One trained number per bucket of distances and head, added to the scores of every layer of a stack."""

    def __init__(self, num_heads: int, buckets: int = 32, max_distance: int = 128, two_sided: bool = True) -> None:
        super().__init__()
        check_buckets(buckets, max_distance, two_sided)
        self.buckets, self.max_distance, self.two_sided = buckets, max_distance, two_sided
        self.weight = nn.Parameter(torch.zeros(buckets, num_heads))

    def forward(self, queries: int, keys: int) -> Tensor:
        """Returns (1, H, T, S) for T queries and S keys; the last query is at the position of the last key."""
        device = self.weight.device
        distances = torch.arange(1 - keys, queries, device=device)
        buckets = relative_buckets(distances, self.buckets, self.max_distance, self.two_sided)
        # Entry (t, s) depends on s - t alone: S + T - 1 numbers per head, each on a diagonal.
        diagonal = torch.arange(keys, device=device) - torch.arange(queries, device=device)[:, None] + queries - 1
        return self.weight[buckets[diagonal]].permute(2, 0, 1)[None]  # (T, S, H) -> (1, H, T, S)
