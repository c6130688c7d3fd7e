"""Encoder and decoder: the paper's section 3.1 and figure 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.attention import MultiHeadAttention
from headwise.nn.cache import KeyValueCache
from headwise.nn.dropout import Dropout
from headwise.nn.feedforward import FeedForward
from headwise.nn.positions import RotaryPositions


@dataclass(frozen=True)
class LayerSpec:
    """The sizes and habits that all layers of a stack share."""

    model_dim: int
    num_heads: int
    ff_dim: int
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.1
    norm: str = "post"
    activation: str = "relu"
    rotary: RotaryPositions | None = None

    def __post_init__(self) -> None:
        if self.norm not in ("post", "pre"):
            raise ShapeError(f"norm must be 'post' (the paper) or 'pre', not '{self.norm}'")

    def attention(self) -> MultiHeadAttention:
        return MultiHeadAttention(self.model_dim, self.num_heads, self.attention_dropout, rotary=self.rotary)

    def cross_attention(self) -> MultiHeadAttention:
        return MultiHeadAttention(self.model_dim, self.num_heads, self.attention_dropout)

    def feed_forward(self) -> FeedForward:
        return FeedForward(self.model_dim, self.ff_dim, self.activation_dropout, self.activation)

    def residual(self) -> Residual:
        return Residual(self.model_dim, self.dropout, self.norm)


class Residual(nn.Module):
    """The frame of a sub-layer: LayerNorm(x + Sublayer(x)) (post-norm, the paper), or x + Sublayer(LayerNorm(x))."""

    def __init__(self, model_dim: int, dropout: float, norm: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(model_dim)
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        out: Tensor
        if self.pre:
            return self.dropout.added(x, sublayer(self.norm(x)))
        out = self.norm(self.dropout.added(x, sublayer(x)))
        return out


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward. With `causal` it is a layer of a language model."""

    def __init__(self, spec: LayerSpec) -> None:
        super().__init__()
        self.self_attention, self.self_residual = spec.attention(), spec.residual()
        self.feed_forward, self.feed_residual = spec.feed_forward(), spec.residual()

    def forward(
        self, x: Tensor, allowed: Tensor | None = None, *, causal: bool = False, past: KeyValueCache | None = None
    ) -> Tensor:  # (B, T, D) -> (B, T, D)
        x = self.self_residual(x, lambda y: self.self_attention(y, y, y, allowed, causal=causal, past=past))
        out: Tensor = self.feed_residual(x, self.feed_forward)
        return out


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention to the encoder's output, feed-forward."""

    def __init__(self, spec: LayerSpec) -> None:
        super().__init__()
        self.self_attention, self.self_residual = spec.attention(), spec.residual()
        self.cross_attention, self.cross_residual = spec.cross_attention(), spec.residual()
        self.feed_forward, self.feed_residual = spec.feed_forward(), spec.residual()

    def forward(
        self,
        x: Tensor,
        cross: tuple[Tensor, Tensor],
        cross_allowed: Tensor | None = None,
        past: KeyValueCache | None = None,
    ) -> Tensor:
        """x (B, T, D) and `cross`, the keys and values of the encoder's output (`cross_attention.keys_values`)."""
        x = self.self_residual(x, lambda y: self.self_attention(y, y, y, causal=True, past=past))
        x = self.cross_residual(x, lambda y: self._look_across(y, cross, cross_allowed))
        out: Tensor = self.feed_residual(x, self.feed_forward)
        return out

    def _look_across(self, y: Tensor, cross: tuple[Tensor, Tensor], allowed: Tensor | None) -> Tensor:
        """The query comes from the decoder, key and value from the encoder (section 3.2.3).

        While decoding, several hypotheses of one sentence share its keys and values: they stand side by side as if they
        were positions, so (B·beam, 1, D) becomes (B, beam, D) and nothing of the memory is repeated.
        """
        rows, length, _ = y.shape
        key, value = cross
        if rows != key.size(0):
            y = y.reshape(key.size(0), -1, y.size(2))
        query = self.cross_attention.queries(y)
        return self.cross_attention.attend(query, key, value, allowed).view(rows, length, -1)


class Encoder(nn.Module):
    """A stack of encoder layers; `final_norm` where the last layer leaves its sum unnormalised (pre-norm)."""

    def __init__(self, spec: LayerSpec, num_layers: int, final_norm: bool | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(spec) for _ in range(num_layers))
        self.norm = _final_norm(spec, final_norm)

    def forward(
        self,
        x: Tensor,
        allowed: Tensor | None = None,
        *,
        causal: bool = False,
        past: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:  # (B, T, D) -> (B, T, D)
        for index, layer in enumerate(self.layers):
            x = layer(x, allowed, causal=causal, past=None if past is None else past[index])
        out: Tensor = self.norm(x)
        return out


class Decoder(nn.Module):
    """A stack of decoder layers."""

    def __init__(self, spec: LayerSpec, num_layers: int, final_norm: bool | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(spec) for _ in range(num_layers))
        self.norm = _final_norm(spec, final_norm)

    def forward(self, x: Tensor, memory: Tensor, memory_allowed: Tensor | None = None) -> Tensor:
        """One masked pass over a whole target: (B, T, D), (B, S, D) -> (B, T, D)."""
        return self.advance(x, self.keys_values(memory), memory_allowed)

    def keys_values(self, memory: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Each layer's cross-attention keys and values of the encoder's output."""
        return [layer.cross_attention.keys_values(memory) for layer in self.layers]  # type: ignore[operator, union-attr]

    def advance(
        self,
        x: Tensor,
        cross: Sequence[tuple[Tensor, Tensor]],
        cross_allowed: Tensor | None = None,
        past: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        """The newest tokens x (B, T, D), given the keys and values of memory and of what was decoded before."""
        for index, layer in enumerate(self.layers):
            x = layer(x, cross[index], cross_allowed, None if past is None else past[index])
        out: Tensor = self.norm(x)
        return out


def _final_norm(spec: LayerSpec, wanted: bool | None) -> nn.Module:
    if spec.norm == "pre" if wanted is None else wanted:
        return nn.LayerNorm(spec.model_dim)
    return nn.Identity()
