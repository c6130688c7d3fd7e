"""Encoder and decoder: the paper's section 3.1 and figure 1.

A stack does not know the kinds of its layers' parts: it gets functions that make them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.attention import Attention
from headwise.nn.cache import Cache
from headwise.nn.dropout import Dropout
from headwise.nn.feedforward import FeedForward
from headwise.nn.multi_head import MultiHeadAttention
from headwise.nn.positions import RotaryPositions


@dataclass(frozen=True)
class LayerMakers:
    """Functions that make the parts of a stack's layers; each is called once per layer."""

    attention: Callable[[], Attention]
    feed_forward: Callable[[], nn.Module]
    norm: Callable[[], nn.Module]
    cross_attention: Callable[[], MultiHeadAttention] | None = None  # for decoders that attend to an encoder's output
    dropout: float = 0.0  # on each sub-layer's output
    norm_first: bool = False  # pre-norm; otherwise post-norm, as in the paper

    @classmethod
    def standard(
        cls,
        model_dim: int,
        num_heads: int,
        ff_dim: int,
        dropout: float = 0.1,
        *,
        attention_dropout: float | None = None,
        activation_dropout: float | None = None,
        norm: str = "post",
        norm_epsilon: float = 1e-5,
        activation: str = "relu",
        rotary: RotaryPositions | None = None,
    ) -> LayerMakers:
        """Makes the paper's layer: multi-head attention, LayerNorm, a feed-forward network of two linear maps."""
        if norm not in ("post", "pre"):
            raise ShapeError(f"norm must be 'post' (the paper) or 'pre', not '{norm}'")
        weights_dropout = dropout if attention_dropout is None else attention_dropout
        inner_dropout = dropout if activation_dropout is None else activation_dropout
        attention = partial(MultiHeadAttention, model_dim, num_heads, weights_dropout)
        return cls(
            attention=partial(attention, rotary=rotary),
            cross_attention=attention,
            feed_forward=partial(FeedForward, model_dim, ff_dim, inner_dropout, activation),
            norm=partial(nn.LayerNorm, model_dim, eps=norm_epsilon),
            dropout=dropout,
            norm_first=norm == "pre",
        )

    def residual(self) -> Residual:
        return Residual(self.norm(), self.dropout, self.norm_first)

    def final_norm(self, wanted: bool | None) -> nn.Module:
        """Makes the norm after the last layer; by default only with pre-norm, whose last sum is not normalised."""
        return self.norm() if (self.norm_first if wanted is None else wanted) else nn.Identity()


class Residual(nn.Module):
    """Residual connection and norm: LayerNorm(x + Sublayer(x)) (post-norm) or x + Sublayer(LayerNorm(x)) (pre-norm)."""

    def __init__(self, norm: nn.Module, dropout: float, norm_first: bool) -> None:
        super().__init__()
        self.norm, self.dropout, self.norm_first = norm, Dropout(dropout), norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], rows: int | None = None) -> Tensor:
        """`rows`: the sublayer computes only so many positions, the first ones."""
        kept = x if rows is None else x[:, :rows]
        if self.norm_first:
            return self.dropout.added(kept, sublayer(self.norm(x)))
        out: Tensor = self.norm(self.dropout.added(kept, sublayer(x)))
        return out


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward. With `causal` it is the layer of a language model."""

    def __init__(self, make: LayerMakers) -> None:
        super().__init__()
        self.self_attention, self.self_residual = make.attention(), make.residual()
        self.feed_forward, self.feed_residual = make.feed_forward(), make.residual()

    def forward(
        self, x: Tensor, allowed: Tensor | None = None, *, rows: int | None = None, **options: Any
    ) -> Tensor:  # (B, T, D) -> (B, T, D)
        """`rows`: only the first so many positions are computed. `options` go to the attention: bias, causal, past."""

        def attend(y: Tensor) -> Tensor:
            query = y if rows is None else y[:, :rows]
            attended: Tensor = self.self_attention(query, y, y, allowed, **options)
            return attended

        x = self.self_residual(x, attend, rows)
        out: Tensor = self.feed_residual(x, self.feed_forward)
        return out


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention to the encoder's output, feed-forward."""

    def __init__(self, make: LayerMakers) -> None:
        super().__init__()
        if make.cross_attention is None:
            raise ShapeError("a decoder layer needs cross-attention: set LayerMakers.cross_attention")
        self.self_attention, self.self_residual = make.attention(), make.residual()
        self.cross_attention, self.cross_residual = make.cross_attention(), make.residual()
        self.feed_forward, self.feed_residual = make.feed_forward(), make.residual()

    def forward(
        self, x: Tensor, cross: tuple[Tensor, ...], cross_allowed: Tensor | None = None, **options: Any
    ) -> Tensor:
        """x is (B, T, D), `cross` the keys and values of the encoder's output; `options` go to the self-attention."""
        x = self.self_residual(x, lambda y: self.self_attention(y, y, y, causal=True, **options))
        x = self.cross_residual(x, lambda y: self._attend_to_source(y, cross[0], cross[1], cross_allowed))
        out: Tensor = self.feed_residual(x, self.feed_forward)
        return out

    def _attend_to_source(self, y: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> Tensor:
        """Takes the query from the decoder, key and value from the encoder (section 3.2.3).

        While decoding, the hypotheses of one sentence share its keys and values. They are treated like positions, so
        (B·beam, 1, D) becomes (B, beam, D), and the encoder's output need not be repeated.
        """
        rows, length, _ = y.shape
        if rows != key.size(0):
            y = y.reshape(key.size(0), -1, y.size(2))
        (query,) = self.cross_attention.heads(y, 0, 1)
        return self.cross_attention.attend(query, key, value, allowed).view(rows, length, -1)


class Encoder(nn.Module):
    """A stack of encoder layers."""

    def __init__(self, make: LayerMakers, num_layers: int, final_norm: bool | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(make) for _ in range(num_layers))
        self.norm = make.final_norm(final_norm)

    def forward(
        self,
        x: Tensor,
        allowed: Tensor | None = None,
        *,
        past: Sequence[Cache] | None = None,
        rows: int | None = None,
        **options: Any,
    ) -> Tensor:  # (B, T, D) -> (B, T or rows, D)
        """`past` has one cache per layer; `options` go to every attention: bias, causal.

        With `rows` the last layer computes only the first so many positions: a classifier reads a single state.
        """
        for index, layer in enumerate(self.layers):
            wanted = rows if index == len(self.layers) - 1 else None
            x = layer(x, allowed, past=None if past is None else past[index], rows=wanted, **options)
        out: Tensor = self.norm(x)
        return out


class Decoder(nn.Module):
    """A stack of decoder layers."""

    def __init__(self, make: LayerMakers, num_layers: int, final_norm: bool | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(make) for _ in range(num_layers))
        self.norm = make.final_norm(final_norm)

    def forward(
        self, x: Tensor, memory: Tensor, memory_allowed: Tensor | None = None, *, bias: Tensor | None = None
    ) -> Tensor:
        """Computes a whole target in one masked pass: (B, T, D), (B, S, D) -> (B, T, D)."""
        return self.advance(x, self.keys_values(memory), memory_allowed, bias=bias)

    def keys_values(self, memory: Tensor) -> list[tuple[Tensor, ...]]:
        """Computes the keys and values of each layer's cross-attention once, since they are the same at every step."""
        return [layer.cross_attention.heads(memory, 1, 3) for layer in self.layers]  # type: ignore[operator, union-attr]

    def advance(
        self,
        x: Tensor,
        cross: Sequence[tuple[Tensor, ...]],
        cross_allowed: Tensor | None = None,
        *,
        past: Sequence[Cache] | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Computes the newest tokens x (B, T, D), given the keys and values of memory and of the earlier tokens."""
        for index, layer in enumerate(self.layers):
            x = layer(x, cross[index], cross_allowed, past=None if past is None else past[index], bias=bias)
        out: Tensor = self.norm(x)
        return out
