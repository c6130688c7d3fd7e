"""The parts of a decoder as `fast_step.py` wants them: weights laid out once, and attention of one token a row.

One query a row leaves a matmul little to share: over a short past, attention is a product and a sum over vectors that
lie side by side. The same numbers come out as in `headwise.nn`, but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.nn import DecoderLayer, MultiHeadAttention

# Cross-attention is folded where that leaves at most this many numbers, heads · source tokens of all sentences, for
# each hypothesis of a sentence: beyond, reading them costs more than the two matmuls that they save.
_MOST_FOLDED = 1024
# Batched products of matrices with fewer multiplications than this are computed one by one, without the fast library
# (aten/src/ATen/native/LinearAlgebra.cpp of PyTorch 2).
_LEAST_PRODUCT = 400


class Linear(NamedTuple):
    """x W + b, W as it is multiplied: (in, out)."""

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, module: nn.Module, rows: slice = slice(None)) -> Linear:
        weight: Tensor = module.weight  # type: ignore[assignment]
        bias: Tensor | None = module.bias  # type: ignore[assignment]
        zeros = weight.new_zeros(weight.size(0))
        return cls(weight[rows].t().contiguous(), (zeros if bias is None else bias)[rows].clone())

    def scaled(self, factor: float) -> Linear:
        return Linear(self.weight * factor, self.bias * factor)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)

    def add_to(self, total: Tensor, x: Tensor) -> Tensor:
        """The same added to `total`, in place."""
        return total.addmm_(x, self.weight).add_(self.bias)


class Norm(NamedTuple):
    size: tuple[int, ...]
    weight: Tensor
    bias: Tensor
    epsilon: float

    @classmethod
    def of(cls, norm: nn.Module) -> Norm:
        assert isinstance(norm, nn.LayerNorm)
        return cls(norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.size, self.weight, self.bias, self.epsilon)


class NearPast(NamedTuple):
    """What a layer keeps of a few tokens. Calling it is attention of one query a row, already scaled."""

    keys: Tensor  # (T, rows, H, K)
    values: Tensor

    def __call__(self, query: Tensor) -> Tensor:  # (rows, D) -> (rows, D)
        queries = query.view(self.keys.shape[1:])
        weights = (self.keys * queries).sum(dim=-1, keepdim=True).softmax(dim=0)  # (T, rows, H, 1)
        return (self.values * weights).sum(dim=0).view_as(query)


class FarPast(NamedTuple):
    """The same of more tokens: then products of matrices are faster."""

    keys: Tensor  # (rows · H, K, T)
    values: Tensor  # (rows · H, T, K)

    def __call__(self, query: Tensor) -> Tensor:  # (rows, D) -> (rows, D)
        weights = torch.bmm(query.view(self.keys.size(0), 1, -1), self.keys).softmax(dim=-1)
        return torch.bmm(weights, self.values).view_as(query)


def pasts(said: Tensor, heads: int) -> Sequence[NearPast | FarPast]:
    """Each layer's, from the keys and values of all: (T, layers, 2, rows, D)."""
    length, layers, _, rows, width = said.shape
    if length * (width // heads) < _LEAST_PRODUCT:
        keys, values = said.view(length, layers, 2, rows, heads, -1).unbind(2)
        return list(map(NearPast, keys.unbind(1), values.unbind(1)))
    keys, values = said.view(length, layers, 2, rows * heads, -1).unbind(2)
    return list(map(FarPast, keys.permute(1, 2, 3, 0).unbind(0), values.permute(1, 2, 0, 3).unbind(0)))


class Cross(Protocol):
    """Cross-attention of one layer for the sentences of a batch."""

    def add_to(self, x: Tensor, y: Tensor, beam: int) -> Tensor:
        """x + attention with queries from y, both (B · beam, D); x is overwritten."""
        ...

    def select(self, sentences: Tensor) -> Cross: ...


class PlainCross(NamedTuple):
    """Keys and values a head, as in the paper."""

    layer: CrossWeights
    keys: Tensor  # (B · H, K, S)
    values: Tensor  # (B · H, S, K)
    added: Tensor  # (B · H, 1, S), 0 or -inf

    def add_to(self, x: Tensor, y: Tensor, beam: int) -> Tensor:
        heads, size = self.layer.heads, self.keys.size(1)
        query = self.layer.query(y)
        if beam > 1:
            query = query.view(-1, beam, heads, size).transpose(1, 2)
        weights = torch.baddbmm(self.added, query.reshape(-1, beam, size), self.keys).softmax(dim=-1)
        attended = torch.bmm(weights, self.values)  # (B · H, beam, K)
        if beam > 1:
            attended = attended.view(-1, heads, beam, size).transpose(1, 2)
        return self.layer.output.add_to(x, attended.reshape(x.shape))

    def select(self, sentences: Tensor) -> PlainCross:
        by_sentence = (part.view(-1, self.layer.heads, *part.shape[1:]) for part in self[1:])
        return PlainCross(self.layer, *(part.index_select(0, sentences).flatten(0, 1) for part in by_sentence))


class FoldedCross(NamedTuple):
    """Cross-attention in two products: (x W_q) K = x (W_q K), and Σ (w V) W_o = w (V W_o), folded once a sentence.

    The mask and b_q K are in what is added to the scores. A head's weights have the sum 1, so a part of b_o that is
    added to every row of V W_o arrives whole.
    """

    keys: Tensor  # (B, D, H · S)
    added: Tensor  # (B, 1, H · S)
    values: Tensor  # (B, H · S, D)
    heads: int

    def add_to(self, x: Tensor, y: Tensor, beam: int) -> Tensor:
        sentences, width = self.values.size(0), x.size(1)
        scores = torch.baddbmm(self.added, y.view(sentences, beam, width), self.keys)  # (B, beam, H · S)
        weights = scores.view(sentences, beam, self.heads, -1).softmax(dim=-1).view_as(scores)
        return x.view(sentences, beam, width).baddbmm_(weights, self.values).view(-1, width)

    def select(self, sentences: Tensor) -> FoldedCross:
        keys, added, values = (part.index_select(0, sentences) for part in self[:3])
        return FoldedCross(keys, added, values, self.heads)


@dataclass(frozen=True)
class CrossWeights:
    heads: int
    query: Linear  # scaled
    keys_values: Linear
    output: Linear

    @classmethod
    def of(cls, attention: MultiHeadAttention) -> CrossWeights:
        width, heads = attention.model_dim, attention.num_heads
        query = Linear.of(attention.query_key_value, slice(0, width)).scaled((width // heads) ** -0.5)
        keys_values = Linear.of(attention.query_key_value, slice(width, 3 * width))
        return cls(heads, query, keys_values, Linear.of(attention.output))

    def of_memory(self, memory: Tensor, allowed: Tensor | None, beam: int) -> Cross:
        """memory (B, S, D), allowed (B, 1, 1, S) or None."""
        sentences, length, width = memory.shape
        mask = None
        if allowed is not None:
            mask = torch.zeros_like(allowed, dtype=memory.dtype).masked_fill_(~allowed, -torch.inf)
        projected = self.keys_values(memory.reshape(-1, width)).view(sentences, length, 2, self.heads, -1)
        if sentences * length * self.heads <= _MOST_FOLDED * beam:
            return self._folded(projected, mask)
        # Longer than it is, with places that are masked, where that brings the fast library in.
        missing = max(0, -(-_LEAST_PRODUCT // (beam * width // self.heads)) - length)
        added = (
            memory.new_zeros(sentences, self.heads, 1, length) if mask is None else mask.expand(-1, self.heads, -1, -1)
        )
        if missing:  # nothing to add is a copy as well
            projected = F.pad(projected, (0, 0, 0, 0, 0, 0, 0, missing))
        keys, values = projected.unbind(2)  # (B, S, H, K)
        return PlainCross(
            self,
            keys.permute(0, 2, 3, 1).flatten(0, 1).contiguous(),
            values.transpose(1, 2).flatten(0, 1).contiguous(),
            F.pad(added, (0, missing), value=-torch.inf).flatten(0, 1),
        )

    def _folded(self, projected: Tensor, mask: Tensor | None) -> FoldedCross:
        sentences, length, _, heads, size = projected.shape
        width = heads * size
        keys, values = projected.permute(2, 3, 0, 1, 4).reshape(2, heads, -1, size).unbind(0)  # (H, B · S, K)
        to_query = self.query.weight.view(width, heads, size).permute(1, 2, 0)  # (H, K, D)
        folded = torch.bmm(keys, to_query).view(heads, sentences, length, width)
        added = torch.bmm(keys, self.query.bias.view(heads, size, 1)).view(heads, sentences, length).transpose(0, 1)
        if mask is not None:
            added = added + mask[:, 0]  # (B, H, S)
        spoken = torch.bmm(values, self.output.weight.view(heads, size, width)).add_(self.output.bias / heads)
        return FoldedCross(
            folded.permute(1, 3, 0, 2).reshape(sentences, width, -1),
            added.reshape(sentences, 1, -1),
            spoken.view(heads, sentences, length, width).transpose(0, 1).reshape(sentences, -1, width),
            heads,
        )


@dataclass(frozen=True)
class Layer:
    """The weights of a decoder layer.

    Keys have no bias: it moves all scores of a query alike, which softmax does not see. Nor have values: attention's
    weights have the sum 1, so what the bias adds to the output is in the output's own.
    """

    pre: bool
    query: Linear  # scaled
    key: Tensor  # (D, D)
    value: Tensor
    self_out: Linear
    self_norm: Norm
    cross: CrossWeights
    cross_norm: Norm
    inner: Linear
    outer: Linear
    feed_norm: Norm
    activation: Callable[[Tensor], Tensor]

    @classmethod
    def of(cls, layer: DecoderLayer) -> Layer:
        own, feed = layer.self_attention, layer.feed_forward
        width = own.model_dim
        query, key, value = (
            Linear.of(own.query_key_value, slice(first, first + width)) for first in range(0, 3 * width, width)
        )
        output = Linear.of(own.output)
        return cls(
            layer.self_residual.pre,
            query.scaled((width // own.num_heads) ** -0.5),
            key.weight,
            value.weight,
            Linear(output.weight, torch.addmv(output.bias, output.weight.t(), value.bias)),
            Norm.of(layer.self_residual.norm),
            CrossWeights.of(layer.cross_attention),
            Norm.of(layer.cross_residual.norm),
            Linear.of(feed.inner),
            Linear.of(feed.outer),
            Norm.of(layer.feed_residual.norm),
            torch.relu_ if feed.activation is F.relu else feed.activation,
        )
