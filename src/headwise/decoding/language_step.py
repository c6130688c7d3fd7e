"""The cached step of `LanguageModel` with nothing around it: no module calls, no axis for time, room for all tokens.

A step of a small model is mostly overhead, which is kept small here. Matrices are copied as their transposes, which
multiply a few rows up to 1.6 times as fast. It computes what `LanguageModel.step` computes on the same weights
(tests/same/test_language_steps.py), as they were when it was made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.decoding.fast_layers import Linear, Norm
from headwise.errors import UsageError
from headwise.models.lm import LanguageModel
from headwise.nn import Embedding, EncoderLayer, RotaryPositions

_MOST_BYTES = 8 << 30  # keys and values of all rows


@dataclass(frozen=True)
class _Layer:
    """The weights of a layer, found once."""

    pre: bool
    joined: Linear  # query, key and value
    output: Linear
    inner: Linear
    outer: Linear
    self_norm: Norm
    feed_norm: Norm
    activation: Callable[[Tensor], Tensor]
    rotary: RotaryPositions | None

    @classmethod
    def of(cls, layer: EncoderLayer) -> _Layer:
        attention, feed = layer.self_attention, layer.feed_forward
        return cls(
            layer.self_residual.pre,
            Linear.of(attention.query_key_value),
            Linear.of(attention.output),
            Linear.of(feed.inner),
            Linear.of(feed.outer),
            Norm.of(layer.self_residual.norm),
            Norm.of(layer.feed_residual.norm),
            feed.activation,
            attention.rotary,
        )


@dataclass
class Past:
    """Keys and values of every row: a tensor a layer, (2, rows, H, capacity, K)."""

    layers: list[Tensor]
    length: int = 0

    @property
    def capacity(self) -> int:
        return self.layers[0].size(3)

    def select(self, rows: Tensor) -> None:
        """Row i becomes the old row rows[i]."""
        for number, layer in enumerate(self.layers):
            kept = layer.new_empty(2, rows.numel(), *layer.shape[2:])
            torch.index_select(layer[..., : self.length, :], 1, rows, out=kept[..., : self.length, :])
            self.layers[number] = kept


class FastLanguageModel:
    """past, logits = fast.read(prompt, rows, capacity), then logits = fast.step(past, tokens) for each token."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.layers = [_Layer.of(layer) for layer in model.stack.layers]  # type: ignore[arg-type]
        self.norm = Norm.of(model.stack.norm) if isinstance(model.stack.norm, nn.LayerNorm) else None
        self.device = next(model.parameters()).device
        self.context: int = model.architecture["max_length"]
        self.num_heads: int = model.architecture["num_heads"]
        self.model_dim: int = model.architecture["model_dim"]
        output = model.output
        self.words = output.weight.t().contiguous() if isinstance(output, Embedding) else None  # (D, V)

    def check_room(self, rows: int, capacity: int) -> None:
        """Refuses what would take too much memory, before it is taken."""
        needed = 4 * len(self.layers) * 2 * rows * capacity * self.model_dim
        if needed > _MOST_BYTES:
            raise UsageError(
                f"{rows:,} texts of {capacity:,} tokens at once need {needed / 2**30:,.0f} GB of memory; "
                "ask for fewer samples"
            )

    def read(self, ids: Tensor, rows: int, capacity: int) -> tuple[Past, Tensor]:
        """Reads (rows, T), or (1, T) that all rows have in common and which is read once; logits are (rows, V)."""
        size = (2, rows, self.num_heads, capacity, self.model_dim // self.num_heads)
        state = self.model.start()
        logits = self.model.step(state, ids)
        past = Past([logits.new_empty(size) for _ in self.layers], ids.size(1))
        for store, cache in zip(past.layers, state.past, strict=True):
            store[..., : past.length, :] = torch.stack(cache.contents())  # (2, 1 or rows, H, T, K)
        return past, logits.expand(rows, -1)

    def step(self, past: Past, tokens: Tensor) -> Tensor:
        """Appends one token a row, (rows,), and returns the logits of the next, (rows, V)."""
        embedded = self.model.embedding(tokens[:, None])
        x: Tensor = self.model.positions(embedded, past.length)[:, 0]  # (rows, D)
        for layer, store in zip(self.layers, past.layers, strict=True):
            if layer.pre:
                x = self._look_back(layer, store, past.length, layer.self_norm(x)).add_(x)
                x = _feed(layer, layer.feed_norm(x)).add_(x)
            else:
                x = layer.self_norm(self._look_back(layer, store, past.length, x).add_(x))
                x = layer.feed_norm(_feed(layer, x).add_(x))
        past.length += 1
        if self.norm is not None:
            x = self.norm(x)
        return self.model.project(x) if self.words is None else x @ self.words

    def _look_back(self, layer: _Layer, store: Tensor, length: int, x: Tensor) -> Tensor:
        """Self-attention of the newest token, whose keys and values join the store: (rows, D) -> (rows, D)."""
        rows = x.size(0)
        joined = layer.joined(x).view(rows, 3, self.num_heads, 1, -1).transpose(0, 1)  # (3, rows, H, 1, K)
        query, newest = joined.select(0, 0), joined.narrow(0, 1, 2)
        if layer.rotary is not None:
            turned = layer.rotary.rotate(joined[:2], length)
            query, newest = turned[0], torch.stack((turned[1], joined[2]))
        store.narrow(3, length, 1).copy_(newest)
        keys, values = store.narrow(3, 0, length + 1).unbind(0)
        attended = F.scaled_dot_product_attention(query, keys, values)  # (rows, H, 1, K)
        return layer.output(attended.reshape(rows, -1))


def _feed(layer: _Layer, x: Tensor) -> Tensor:
    return layer.outer(layer.activation(layer.inner(x)))
