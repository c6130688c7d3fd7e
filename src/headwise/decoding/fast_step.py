"""A decoding step with little overhead: no module calls, no time axis, one cache for all layers.

A decoding step of a small model is mostly overhead, of which this has about a third. It computes what the network's own
`advance` computes (tests/same/test_decoding_steps.py), from copies of the weights made at construction. A network
without `decoder_parts`, or with another kind of attention, decodes with its own, slower `advance`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.models.interface import DecoderParts, OutputLayer, Stepper
from headwise.nn import Embedding, FeedForward, GatedFeedForward, MultiHeadAttention, RMSNorm
from headwise.nn.embedding import with_absent

_FIRST_CAPACITY = 32  # tokens
# Up to this many tokens, attention is faster as an elementwise product and a sum than as a matmul, which gains little
# with a single query per row.
_SHORT_PAST = 20

Part = Callable[[Tensor], Tensor]  # (rows, D) -> (rows, D)


def fast_stepper(network: Any) -> Stepper:
    """Returns the fast step of a network, or the network itself if there is none."""
    parts: DecoderParts | None = network.decoder_parts() if hasattr(network, "decoder_parts") else None
    if parts is None or not all(type(layer.self_attention) is MultiHeadAttention for layer in parts.layers):
        stepper: Stepper = network
        return stepper
    return FastStepper(network, parts)


class Linear(NamedTuple):
    """x W + b, with W stored as (in, out): with few rows up to 1.6 times as fast as the transposed layout."""

    weight: Tensor
    bias: Tensor | None

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None) -> Linear:
        return cls(weight.t().contiguous(), bias)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.mm(x, self.weight) if self.bias is None else torch.addmm(self.bias, x, self.weight)


class FastResidual(NamedTuple):
    """Residual connection and norm; overwrites what the sub-layer returns."""

    norm: Part
    norm_first: bool

    def __call__(self, x: Tensor, sublayer: Part) -> Tensor:
        if self.norm_first:
            return sublayer(self.norm(x)).add_(x)
        return self.norm(sublayer(x).add_(x))


class Cross(NamedTuple):
    """Keys and values of one layer's cross-attention, for the sentences of a batch."""

    keys: Tensor  # (B · H, K, S)
    values: Tensor  # (B · H, S, K)
    hidden: Tensor  # (B · H or 1, 1, S): 0, or -inf where there is padding

    def select(self, sentences: Tensor, heads: int) -> Cross:
        def chosen(part: Tensor) -> Tensor:
            if part.size(0) == 1:
                return part
            return part.view(-1, heads, *part.shape[1:]).index_select(0, sentences).flatten(0, 1)

        return Cross(*map(chosen, self))


class FastLayer:
    """Computes a layer for one token per row: self-attention over the past, cross-attention if any, feed-forward."""

    def __init__(self, layer: Any) -> None:
        attention: MultiHeadAttention = layer.self_attention
        self.heads, self.head_dim, self.rotary = attention.num_heads, attention.head_dim, attention.rotary
        weight, bias = attention.query_key_value.weight, attention.query_key_value.bias
        inner, scale = self.heads * self.head_dim, _scale(attention)
        factors = torch.cat((weight.new_full((inner,), scale), weight.new_ones(2 * inner)))  # queries are scaled
        self.query_key_value = Linear.of(weight * factors[:, None], None if bias is None else bias * factors)
        self.output = Linear.of(attention.output.weight, attention.output.bias)
        self.self_residual = _residual(layer.self_residual)
        self.cross = FastCross(layer.cross_attention) if hasattr(layer, "cross_attention") else None
        self.cross_residual = _residual(layer.cross_residual) if self.cross is not None else None
        self.feed_forward, self.feed_residual = _feed_forward(layer.feed_forward), _residual(layer.feed_residual)

    def __call__(self, x: Tensor, past: Tensor, cross: Cross | None, bias: Tensor | None) -> Tensor:
        """(rows, D) -> (rows, D). `past` is this layer's, (T, 2, rows, H · K), with room for the token at its end;
        `bias` is added to the scores of self-attention, (H, T)."""
        x = self.self_residual(x, lambda y: self._self_attention(y, past, bias))
        if self.cross is not None and self.cross_residual is not None and cross is not None:
            cross_attention = self.cross
            x = self.cross_residual(x, lambda y: cross_attention(y, cross))
        return self.feed_residual(x, self.feed_forward)

    def _self_attention(self, y: Tensor, past: Tensor, bias: Tensor | None) -> Tensor:
        rows, length = y.size(0), past.size(0)
        joined = self.query_key_value(y).view(rows, 3, self.heads, self.head_dim)
        stored = past.view(length, 2, rows, self.heads, self.head_dim)
        query, stored[-1] = joined[:, 0], joined[:, 1:].transpose(0, 1)
        if self.rotary.rotates:
            query, stored[-1, 0] = (
                self.rotary.rotate(x[:, :, None], length - 1)[:, :, 0] for x in joined.unbind(1)[:2]
            )
        keys, values = stored.unbind(1)  # (T, rows, H, K)
        attend = _attend_short if length <= _SHORT_PAST else _attend_long
        return self.output(attend(query, keys, values, bias).flatten(1))


class FastCross:
    """Computes cross-attention for all hypotheses of a sentence at once, since they share its keys and values."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        inner = attention.num_heads * attention.head_dim
        weight, bias = attention.query_key_value.weight, attention.query_key_value.bias
        self.heads, self.head_dim = attention.num_heads, attention.head_dim
        scale = _scale(attention)
        self.query = Linear.of(weight[:inner] * scale, None if bias is None else bias[:inner] * scale)
        self.output = Linear.of(attention.output.weight, attention.output.bias)
        self.attention = attention

    def of_memory(self, memory: Tensor, allowed: Tensor | None) -> Cross:
        """Computes keys and values of memory (B, S, D); allowed is (B, 1, 1, S) or None."""
        keys, values = (part.flatten(0, 1) for part in self.attention.heads(memory, 1, 3))  # (B · H, S, K)
        hidden = memory.new_zeros(1, 1, memory.size(1))
        if allowed is not None:
            per_head = allowed.expand(-1, self.heads, -1, -1).flatten(0, 1)
            hidden = memory.new_zeros(per_head.shape).masked_fill_(~per_head, -torch.inf)
        return Cross(keys.transpose(1, 2).contiguous(), values.contiguous(), hidden)

    def __call__(self, y: Tensor, cross: Cross) -> Tensor:  # (B · width, D) -> (B · width, D)
        width = y.size(0) * self.heads // cross.keys.size(0)
        query = self.query(y).view(-1, width, self.heads, self.head_dim).transpose(1, 2)  # (B, H, width, K)
        scores = torch.baddbmm(cross.hidden, query.reshape(-1, width, self.head_dim), cross.keys)
        attended = torch.bmm(scores.softmax(dim=-1), cross.values)  # (B · H, width, K)
        joined = attended.view(-1, self.heads, width, self.head_dim).transpose(1, 2)
        return self.output(joined.reshape(y.size(0), -1))


@dataclass
class FastState:
    """The past of every row: `group` rows per sentence, or one in the first step."""

    past: Tensor  # keys and values of all layers, (capacity, layers, 2, rows, H · K); rows is 0 at first
    cross: list[Cross | None]
    heads: int
    group: int
    sentences: int
    length: int = 0
    spare: Tensor | None = None  # the buffer that rows are copied to when they are reordered

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]; rows are then in groups of `group`, and sentences in their order."""
        rows, width = self.past.size(3), self.past.size(3) // self.sentences
        shape = *self.past.shape[:3], indices.numel(), self.past.size(4)
        if self.spare is None or self.spare.shape != shape:
            self.spare = self.past.new_empty(shape)
        used, free = (x[: self.length].flatten(0, 2) for x in (self.past, self.spare))  # (length · layers · 2, rows, …)
        torch.index_select(used, 1, indices, out=free)
        self.past, self.spare = self.spare, self.past if indices.numel() == rows else None
        sentences = indices.numel() // self.group
        if sentences != self.sentences:
            kept = indices[:: self.group].div(width, rounding_mode="floor")
            self.cross = [None if cross is None else cross.select(kept, self.heads) for cross in self.cross]
            self.sentences = sentences

    def make_room(self, rows: int, tokens: int = 1) -> None:
        """Makes room for `tokens` more tokens in each of `rows` rows."""
        if self.length == 0:
            self.past = self.past.new_empty(
                max(_FIRST_CAPACITY, 2 * tokens), *self.past.shape[1:3], rows, self.past.size(4)
            )
        elif self.length + tokens > self.past.size(0):
            self.past, self.spare = torch.cat((self.past, torch.empty_like(self.past))), None


class FastStepper:
    """Provides `start` and `advance` for a network whose decoder is a plain stack of layers."""

    @torch.inference_mode()
    def __init__(self, network: Any, parts: DecoderParts) -> None:
        self.network, self.parts = network, parts
        self.layers = [FastLayer(layer) for layer in parts.layers]
        self.norm = _norm(parts.norm, parts.scale)
        self._bias = None if parts.bias is None else parts.bias(_FIRST_CAPACITY)
        self.output: OutputLayer = (
            FastOutput(network.output) if isinstance(network.output, Embedding) else network.output
        )

    def start(self, source: tuple[Tensor, ...] | None, rows: int = 1) -> FastState:
        first = self.layers[0]
        weight = first.query_key_value.weight
        empty = weight.new_empty(0, len(self.layers), 2, 0, first.heads * first.head_dim)
        if source is None:
            return FastState(empty, [None] * len(self.layers), first.heads, rows, 1)
        memory = self.network.encode(*source)
        cross = [layer.cross.of_memory(memory.states, memory.allowed) if layer.cross else None for layer in self.layers]
        return FastState(empty, cross, first.heads, rows, memory.states.size(0))

    def advance(self, state: FastState, tokens: Tensor) -> Tensor:
        """Appends one token per row, (rows,), or several (rows, T); returns the states after the last, (rows, D)."""
        if tokens.dim() == 2:
            if state.length == 0 and state.cross[0] is None:
                return self._read(state, tokens)
            for column in tokens[:, :-1].unbind(dim=1):
                self.advance(state, column)
            tokens = tokens[:, -1]
        state.make_room(tokens.numel())
        x = self.parts.embed(tokens[:, None], state.length)[:, 0]  # (rows, D)
        state.length += 1
        bias = self._newest_bias(state.length)
        for number, layer in enumerate(self.layers):
            x = layer(x, state.past[: state.length, number], state.cross[number], bias)
        return self.norm(x)

    def _newest_bias(self, length: int) -> Tensor | None:
        """Returns the bias of the newest of `length` tokens, (H, length): the end of one for more tokens."""
        if self._bias is None or self.parts.bias is None:
            return None
        while self._bias.size(1) < length:  # searches at the same time may all compute it: they get the same
            self._bias = self.parts.bias(2 * self._bias.size(1))
        return self._bias[:, -length:]

    def _read(self, state: FastState, tokens: Tensor) -> Tensor:
        """Reads a prompt with the network itself, all positions at once, and copies the caches of its layers."""
        own = self.network.start(None, state.group)
        states: Tensor = self.network.advance(own, tokens)
        state.make_room(*tokens.shape)
        state.sentences = max(1, tokens.size(0) // state.group)
        for number, cache in enumerate(own.past):
            remembered = torch.stack(cache.contents())  # (2, rows, H, T, K)
            state.past[: tokens.size(1), number] = remembered.permute(3, 0, 1, 2, 4).flatten(3)
        state.length = tokens.size(1)
        return states


class FastOutput:
    """The output layer, with its table transposed."""

    def __init__(self, embedding: Embedding) -> None:
        self.project = Linear.of(embedding.weight, embedding.bias)  # its weight is (D, V)
        self.absent, self.loss = embedding.absent, embedding.loss

    def logits(self, states: Tensor) -> Tensor:  # (rows, D) -> (rows, V)
        return with_absent(self.project(states), self.absent)


def _scale(attention: MultiHeadAttention) -> float:
    return attention.head_dim**-0.5 if attention.scale is None else attention.scale


# ---- parts of layers: known modules are replaced by plain functions, any other is called as it is


def _attend_short(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """(rows, H, K), (T, rows, H, K) twice, (H, T) -> (rows, H, K)."""
    scores = (keys * query).sum(dim=-1, keepdim=True)  # (T, rows, H, 1)
    if bias is not None:
        scores += bias.t()[:, None, :, None]
    return (values * scores.softmax(dim=0)).sum(dim=0)


def _attend_long(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """Computes the same with matmuls."""
    rows, heads, _ = query.shape
    keys, values = (part.flatten(1, 2) for part in (keys, values))  # (T, rows · H, K)
    scores = torch.bmm(query.reshape(keys.size(1), 1, -1), keys.permute(1, 2, 0))  # (rows · H, 1, T)
    if bias is not None:
        scores.view(rows, heads, -1).add_(bias)
    return torch.bmm(scores.softmax(dim=-1), values.transpose(0, 1)).view_as(query)


def _residual(residual: Any) -> FastResidual:
    return FastResidual(_norm(residual.norm), residual.norm_first)


def _norm(norm: nn.Module, scale: float = 1.0) -> Part:
    """The norm, with its output multiplied by `scale`."""
    if isinstance(norm, nn.LayerNorm):
        bias = None if norm.bias is None else norm.bias * scale
        return partial(
            torch.layer_norm, normalized_shape=norm.normalized_shape, weight=norm.weight * scale, bias=bias,
            eps=norm.eps,
        )  # fmt: skip
    if isinstance(norm, RMSNorm):
        return partial(torch.rms_norm, normalized_shape=norm.weight.shape, weight=norm.weight * scale, eps=norm.epsilon)
    if isinstance(norm, nn.Identity) and scale == 1.0:
        return lambda x: x
    return lambda x: norm(x) * scale


def _feed_forward(module: nn.Module) -> Part:
    if isinstance(module, GatedFeedForward):
        both = Linear.of(torch.cat((module.gate.weight, module.inner.weight)), None)
        out, gate = Linear.of(module.outer.weight, None), module.activation

        def gated(x: Tensor) -> Tensor:
            opened, inner = both(x).chunk(2, dim=-1)
            return out(gate(opened).mul_(inner))

        return gated
    if not isinstance(module, FeedForward):
        return lambda x: module(x[:, None])[:, 0]
    inner, outer = (Linear.of(linear.weight, linear.bias) for linear in (module.inner, module.outer))
    activation = torch.relu_ if module.activation is F.relu else module.activation
    return lambda x: outer(activation(inner(x)))
