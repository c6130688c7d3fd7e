"""Transformer-XL: a language model that remembers earlier segments of its text (Dai et al. 2019, arXiv 1901.02860)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headwise.config.families.xl import TransformerXLSettings
from headwise.errors import ShapeError
from headwise.models.inputs import build_table, check_ids
from headwise.models.interface import Network
from headwise.models.lm import LanguageState
from headwise.nn import (
    Dropout,
    Encoder,
    FeedForward,
    LayerMakers,
    NoPositions,
    RelativeAttention,
    RelativePositions,
    SegmentMemory,
)


class TransformerXL(Network):
    """Predicts the next token: model(ids) gives its logits at every position.

    A text is read in segments. `carried` also returns what the next segment is given after its ids: the inputs of every
    layer at the last `memory` tokens, (B, memory, D) per layer. Keyword arguments are those of TransformerXLSettings:
    model_dim, num_heads, layers, ff_dim, segment, memory, dropout, …
    """

    def __init__(self, *, vocab: int, **settings: Any) -> None:
        super().__init__()
        self.settings = sizes = TransformerXLSettings.of(settings)
        self.architecture = {"vocab": vocab, **sizes.model_dump(mode="json")}
        self.segment, self.memory = sizes.segment, sizes.memory
        if sizes.head_dim is None and sizes.model_dim % sizes.num_heads:
            raise ShapeError(f"num_heads ({sizes.num_heads}) must divide model_dim ({sizes.model_dim})")
        head_dim = sizes.head_dim or sizes.model_dim // sizes.num_heads
        distances = partial(
            RelativePositions, sizes.model_dim, sizes.num_heads, head_dim, clamp=sizes.clamp, dropout=sizes.dropout
        )
        table = partial(build_table, vocab, sizes.model_dim, sizes.cutoffs)
        self.embedding = table()
        self.output = self.embedding if sizes.tie != "none" else table()
        self.positions = NoPositions()  # attention knows distances by itself
        self.dropout = Dropout(sizes.dropout)
        self.distances = distances() if sizes.share_biases else None
        self.stack = Encoder(_makers(sizes, None if sizes.share_biases else distances), sizes.layers)

    def forward(self, ids: Tensor, *memory: Tensor) -> Tensor:
        """(B, T) -> logits (B, T, V)."""
        return self.output.logits(self.states(ids, *memory))

    def states(self, ids: Tensor, *memory: Tensor) -> Tensor:
        """(B, T) -> (B, T, D). In one pass, a longer text sees what it would see segment by segment.

        That is what `advance` gives after each beginning of the text, read as a prompt.
        """
        if memory or ids.shape[-1] <= self.settings.segment:
            return self.carried(ids, *memory)[0]
        check_ids("text", ids, None)
        x: Tensor = self.dropout(self._read(ids, None, self._reach(ids)))
        return x

    def carried(self, ids: Tensor, *memory: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """(B, T) and the memory of the segment before, (B, M, D) per layer, none at first -> states and new memory."""
        check_ids("text", ids, None)
        if len(memory) not in (0, len(self.stack.layers)):
            raise ShapeError(f"a memory has one tensor per layer ({len(self.stack.layers)}), not {len(memory)}")
        before: Sequence[Tensor | None] = memory or [None] * len(self.stack.layers)
        past = [SegmentMemory(self.memory, states) for states in before]
        x: Tensor = self.dropout(self._read(ids, past))
        return x, tuple(kept.states for kept in past if kept.states is not None)

    def _read(
        self, ids: Tensor, past: Sequence[Any] | None, allowed: Tensor | None = None
    ) -> Tensor:  # (B, T) -> (B, T, D)
        x = self.dropout(self.positions(self.embedding(ids)))
        out: Tensor = self.stack(x, allowed, causal=True, past=past, positions=self.distances)
        return out

    def _reach(self, ids: Tensor) -> Tensor:
        """Where a text is read in segments: each token sees its own segment and the `memory` before that, (T, T)."""
        place = torch.arange(ids.size(1), device=ids.device)
        first = place // self.settings.segment * self.settings.segment - self.memory
        return place >= first[:, None]

    # ---- decoding

    def start(self, source: tuple[Tensor, ...] | None = None, rows: int = 1) -> LanguageState:
        """Creates the state before the first token. There is no source: a prompt is the first thing to append."""
        return LanguageState([layer.self_attention.new_cache() for layer in self.stack.layers])  # type: ignore[operator, union-attr]

    def advance(self, state: LanguageState, tokens: Tensor) -> Tensor:
        """Appends tokens, (rows,) or a whole prompt (rows, T), and returns the states after the last, (rows, D).

        A prompt is read in segments, as in training. Each single token sees the last `memory` tokens before it.
        """
        ids = tokens[:, None] if tokens.dim() == 1 else tokens
        check_ids("text", ids, None)
        for part in ids.split(self.settings.segment, dim=1):  # type: ignore[no-untyped-call]
            x = self._read(part, state.past)
            state.length += part.size(1)
        newest: Tensor = x[:, -1]
        return newest

    # ---- for training and for looking inside

    def shard_units(self) -> Iterator[nn.Module | list[nn.Module]]:
        yield from self.stack.layers

    def attention_names(self) -> dict[str, list[str]]:
        return {"causal": [f"stack.layers.{number}.self_attention" for number in range(len(self.stack.layers))]}

    def entrance(self) -> nn.Module:
        return self.positions


def _makers(sizes: TransformerXLSettings, distances: partial[RelativePositions] | None) -> LayerMakers:
    weights_dropout = sizes.dropout if sizes.attention_dropout is None else sizes.attention_dropout
    inner_dropout = sizes.dropout if sizes.activation_dropout is None else sizes.activation_dropout

    def attention() -> RelativeAttention:
        return RelativeAttention(
            sizes.model_dim, sizes.num_heads, weights_dropout, positions=distances() if distances else None,
            memory=sizes.memory, head_dim=sizes.head_dim,
        )  # fmt: skip

    return LayerMakers(
        attention=attention,
        feed_forward=partial(FeedForward, sizes.model_dim, sizes.ff_dim, inner_dropout, sizes.activation),
        norm=partial(nn.LayerNorm, sizes.model_dim),
        dropout=sizes.dropout,
        norm_first=sizes.norm == "pre",
    )
