"""The cached step of `Transformer` with nothing around it: no module calls, no axis for time, one cache a layer.

A step of a small model is mostly overhead, and this has about half of it. It computes what `Transformer.step` computes
on the same weights (tests/same/test_decoding_steps.py) and is made anew for each search, so they may change in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.models.transformer import Memory, Transformer
from headwise.nn import DecoderLayer

_FIRST_CAPACITY = 32  # tokens


class _Linear(NamedTuple):
    weight: Tensor
    bias: Tensor | None

    @classmethod
    def of(cls, linear: nn.Module) -> _Linear:
        return cls(linear.weight, linear.bias)  # type: ignore[arg-type]

    def rows(self, count: int) -> _Linear:
        return _Linear(self.weight[:count], None if self.bias is None else self.bias[:count])

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class _Norm(NamedTuple):
    size: tuple[int, ...]
    weight: Tensor
    bias: Tensor
    epsilon: float

    @classmethod
    def of(cls, norm: nn.Module) -> _Norm:
        assert isinstance(norm, nn.LayerNorm)
        return cls(norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.size, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True)
class _Layer:
    """The weights of a decoder layer, found once."""

    pre: bool
    self_in: _Linear
    self_out: _Linear
    self_norm: _Norm
    cross_in: _Linear  # queries only
    cross_out: _Linear
    cross_norm: _Norm
    inner: _Linear
    outer: _Linear
    feed_norm: _Norm
    activation: Callable[[Tensor], Tensor]

    @classmethod
    def of(cls, layer: DecoderLayer) -> _Layer:
        own, cross, feed = layer.self_attention, layer.cross_attention, layer.feed_forward
        return cls(
            layer.self_residual.pre,
            _Linear.of(own.query_key_value),
            _Linear.of(own.output),
            _Norm.of(layer.self_residual.norm),
            _Linear.of(cross.query_key_value).rows(cross.model_dim),
            _Linear.of(cross.output),
            _Norm.of(layer.cross_residual.norm),
            _Linear.of(feed.inner),
            _Linear.of(feed.outer),
            _Norm.of(layer.feed_residual.norm),
            feed.activation,
        )


@dataclass
class FastState:
    """The past of every row. Rows are `beam` for each sentence."""

    cross: list[tuple[Tensor, Tensor]]  # a layer's keys and values of the memory, (sentences, H, S, K)
    mask: Tensor | None  # (sentences, 1, 1, S), 0 or -inf, added to attention's scores
    past: list[Tensor]  # a layer's keys and values so far, (capacity, rows, 2 · D): a step writes one block
    beam: int
    length: int = 0

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]. Rows stay in groups of `beam`, each group from one sentence."""
        for number, past in enumerate(self.past):
            moved = past.new_empty(past.size(0), indices.numel(), past.size(2))
            torch.index_select(past[: self.length], 1, indices, out=moved[: self.length])
            self.past[number] = moved
        sentences = indices[:: self.beam].div(self.beam, rounding_mode="floor")
        count = self.cross[0][0].size(0)
        if torch.equal(sentences, torch.arange(count, device=sentences.device)):
            return
        self.cross = [(key[sentences], value[sentences]) for key, value in self.cross]
        self.mask = None if self.mask is None else self.mask[sentences]

    def make_room(self) -> None:
        capacity = self.past[0].size(0)
        if self.length == capacity:
            self.past = [torch.cat((past, torch.empty_like(past))) for past in self.past]


class FastTransformer:
    """A `Model` for the searches, of a `Transformer`."""

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.layers = [_Layer.of(layer) for layer in model.decoder.layers]  # type: ignore[arg-type]
        self.norm = _Norm.of(model.decoder.norm) if isinstance(model.decoder.norm, nn.LayerNorm) else None
        self.model_dim: int = model.architecture["model_dim"]
        self.num_heads: int = model.architecture["num_heads"]

    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Memory:
        return self.model.encode(source_ids, source_lengths)

    def start(self, memory: Memory, beam: int = 1) -> FastState:
        states = memory.states
        cross = [(k.contiguous(), v.contiguous()) for k, v in self.model.decoder.keys_values(states)]
        mask = None
        if memory.allowed is not None:
            mask = torch.zeros(memory.allowed.shape, dtype=states.dtype, device=states.device)
            mask.masked_fill_(~memory.allowed, -torch.inf)
        size = (_FIRST_CAPACITY, states.size(0) * beam, 2 * self.model_dim)
        return FastState(cross, mask, [states.new_empty(size) for _ in self.layers], beam)

    def step(self, state: FastState, tokens: Tensor) -> Tensor:
        """Appends one token a row, (rows,), and returns the logits of the next, (rows, V)."""
        state.make_room()
        embedded = self.model.target_embedding(tokens[:, None])
        x: Tensor = self.model.target_positions(embedded, state.length)[:, 0]  # (rows, D)
        for number, layer in enumerate(self.layers):
            if layer.pre:
                x = x + self._look_back(layer, state, number, layer.self_norm(x))
                x = x + self._look_across(layer, state, number, layer.cross_norm(x))
                x = x + layer.outer(layer.activation(layer.inner(layer.feed_norm(x))))
            else:
                x = layer.self_norm(x + self._look_back(layer, state, number, x))
                x = layer.cross_norm(x + self._look_across(layer, state, number, x))
                x = layer.feed_norm(x + layer.outer(layer.activation(layer.inner(x))))
        state.length += 1
        return self.model.project(x if self.norm is None else self.norm(x))

    def _look_back(self, layer: _Layer, state: FastState, number: int, x: Tensor) -> Tensor:
        """Self-attention of the newest token, whose keys and values join the cache: (rows, D) -> (rows, D)."""
        rows, heads = x.size(0), self.num_heads
        projected = layer.self_in(x)  # (rows, 3 · D): query, key, value
        past = state.past[number]
        past[state.length] = projected[:, self.model_dim :]
        keys_values = past[: state.length + 1].view(state.length + 1, rows, 2, heads, -1).permute(2, 1, 3, 0, 4)
        query = projected[:, : self.model_dim].view(rows, heads, 1, -1)
        attended = F.scaled_dot_product_attention(query, keys_values[0], keys_values[1])  # (rows, H, 1, K)
        return layer.self_out(attended.reshape(rows, -1))

    def _look_across(self, layer: _Layer, state: FastState, number: int, x: Tensor) -> Tensor:
        """Cross-attention; hypotheses of one sentence are its queries, side by side: (rows, D) -> (rows, D)."""
        key, value = state.cross[number]
        query = layer.cross_in(x).view(key.size(0), state.beam, self.num_heads, -1).transpose(1, 2)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=state.mask)  # (B, H, beam, K)
        return layer.cross_out(attended.transpose(1, 2).reshape(x.shape))
