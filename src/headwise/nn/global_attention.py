"""Attention over all states of a recurrent encoder, by one of three scores (Luong et al. 2015, arXiv 1508.04025).

Multi-head attention with one head and without projections of values is `DotScore`, divided by √K.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.attention import AdditiveAttention, Attention, masked_softmax


class DotScore(nn.Module):
    """score(s, h) = s · h."""

    def keys(self, memory: Tensor) -> Tensor:
        """What of a score depends on the source alone: (B, S, H) -> (B, S, …), computed once per sentence."""
        return memory

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """(B, T, H), keys of the memory -> (B, T, S)."""
        return query @ keys.transpose(1, 2)


class GeneralScore(DotScore):
    """score(s, h) = s · W h."""

    def __init__(self, query_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory_dim, query_dim, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        keys: Tensor = self.key(memory)
        return keys


class AdditiveScore(DotScore):
    """score(s, h) = v · tanh(W s + U h): that of `AdditiveAttention` (Bahdanau et al. 2015, arXiv 1409.0473)."""

    def __init__(self, query_dim: int, memory_dim: int, inner_dim: int) -> None:
        super().__init__()
        self.additive = AdditiveAttention(query_dim, memory_dim, inner_dim)

    def keys(self, memory: Tensor) -> Tensor:
        keys: Tensor = self.additive.key(memory)
        return keys

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.additive.scores(query, keys)


def build_score(kind: str, query_dim: int, memory_dim: int) -> DotScore:
    """A score by its name in a recipe."""
    if kind == "additive":
        return AdditiveScore(query_dim, memory_dim, query_dim)
    if kind == "general":
        return GeneralScore(query_dim, memory_dim)
    if kind != "dot":
        raise ShapeError(f"a score is additive, dot or general, not '{kind}'")
    if query_dim != memory_dim:
        raise ShapeError(f"the score 'dot' needs states of one width, not {query_dim} and {memory_dim}")
    return DotScore()


class GlobalAttention(Attention):
    """One head that looks at the whole source: weights = softmax of the scores, output = their mean of the states."""

    def __init__(self, score: DotScore) -> None:
        super().__init__()
        self.score = score

    def forward(self, query: Tensor, keys: Tensor, memory: Tensor, allowed: Tensor | None = None) -> Tensor:
        """(B, T, H), keys of the memory, (B, S, H), allowed (B, 1, S) -> (B, T, H)."""
        output, weights = self.attend(query, keys, memory, allowed)
        self.show([weights], allowed)
        return output

    def attend(self, query: Tensor, keys: Tensor, memory: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
        """Output and weights, unseen by observers: a loop over steps shows the weights of all steps at its end."""
        weights = masked_softmax(self.score(query, keys), allowed)  # (B, T, S)
        return weights @ memory, weights

    def show(self, weights: Sequence[Tensor], allowed: Tensor | None) -> None:
        """Tells an observer the weights of successive steps, (B, steps, S) each, as those of one pass."""
        if (observer := self.observer) is not None:
            seen = None if allowed is None else allowed[:, None]
            observer(lambda: (torch.cat(list(weights), dim=1)[:, None], seen))  # (B, 1 head, T, S)
