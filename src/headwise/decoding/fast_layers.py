"""The parts of a decoder as `fast_step.py` wants them: weights laid out once, and attention of one token a row.

One query a row leaves a matmul little to share: over a short past, attention is a product and a sum over vectors that
lie side by side. The same numbers come out as in `headwise.nn`, but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
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

    def scaled(self, columns: int, factor: float) -> Linear:
        """The first `columns` outputs times a factor."""
        self.weight[:, :columns] *= factor
        self.bias[:columns] *= factor
        return self

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


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


def attend_past(query: Tensor, keys: Tensor, values: Tensor, heads: int) -> Tensor:
    """Attention of one query a row, already scaled: (rows, D), (T, rows, D) twice -> (rows, D)."""
    length, rows, width = keys.shape
    if length * (width // heads) < _LEAST_PRODUCT:
        keys, values = (part.view(length, rows, heads, -1) for part in (keys, values))
        weights = (keys * query.view(rows, heads, -1)).sum(dim=-1).softmax(dim=0)  # (T, rows, H)
        return (values * weights.unsqueeze(-1)).sum(dim=0).view(rows, width)
    keys, values = (part.view(length, rows * heads, -1).transpose(0, 1) for part in (keys, values))  # (rows · H, T, K)
    weights = torch.bmm(query.reshape(rows * heads, 1, -1), keys.transpose(1, 2)).softmax(dim=-1)
    return torch.bmm(weights, values).view(rows, width)


class Cross(Protocol):
    """Cross-attention of one layer for the sentences of a batch."""

    def add_to(self, x: Tensor, y: Tensor, beam: int) -> Tensor:
        """x + attention with queries from y, both (B · beam, D)."""
        ...

    def select(self, sentences: Tensor) -> Cross: ...


class PlainCross(NamedTuple):
    """Keys and values a head, as in the paper."""

    layer: CrossWeights
    keys: Tensor  # (B, H, K, S)
    values: Tensor  # (B, H, S, K)
    added: Tensor  # (B, H, 1, S), 0 or -inf

    def add_to(self, x: Tensor, y: Tensor, beam: int) -> Tensor:
        sentences, heads, size, _ = self.keys.shape
        query = self.layer.query(y).view(sentences, beam, heads, size).transpose(1, 2).reshape(-1, beam, size)
        weights = torch.baddbmm(self.added.flatten(0, 1), query, self.keys.flatten(0, 1)).softmax(dim=-1)
        attended = torch.bmm(weights, self.values.flatten(0, 1)).view(sentences, heads, beam, size)
        return x + self.layer.output(attended.transpose(1, 2).reshape(x.shape))

    def select(self, sentences: Tensor) -> PlainCross:
        return PlainCross(self.layer, *(part.index_select(0, sentences) for part in self[1:]))


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
        return torch.baddbmm(x.view(sentences, beam, width), weights, self.values).view(-1, width)

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
        query = Linear.of(attention.query_key_value, slice(0, width)).scaled(width, (width // heads) ** -0.5)
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
        keys, values = F.pad(projected, (0, 0, 0, 0, 0, 0, 0, missing)).unbind(2)  # (B, S, H, K)
        return PlainCross(
            self,
            keys.permute(0, 2, 3, 1).contiguous(),
            values.transpose(1, 2).contiguous(),
            F.pad(added.expand(-1, self.heads, -1, -1), (0, missing), value=-torch.inf),
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
    """The weights of a decoder layer."""

    pre: bool
    self_in: Linear  # query (scaled), key, value
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
        scale = (own.model_dim // own.num_heads) ** -0.5
        return cls(
            layer.self_residual.pre,
            Linear.of(own.query_key_value).scaled(own.model_dim, scale),
            Linear.of(own.output),
            Norm.of(layer.self_residual.norm),
            CrossWeights.of(layer.cross_attention),
            Norm.of(layer.cross_residual.norm),
            Linear.of(feed.inner),
            Linear.of(feed.outer),
            Norm.of(layer.feed_residual.norm),
            feed.activation,
        )
