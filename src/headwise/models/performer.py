"""Performer: attention in linear time by random features (Choromanski et al. 2021, arXiv 2009.14794)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn

from headwise.config.families.performer import PerformerSettings
from headwise.errors import ShapeError
from headwise.models.inputs import allowed_by_lengths, build_positions, check_ids
from headwise.models.interface import Network
from headwise.models.lm import LanguageState
from headwise.nn import Dropout, Embedding, Encoder, FavorAttention, FeedForward, LayerMakers
from headwise.nn.heads import ClassHead, pool


class Performer(Network):
    """model(ids) gives logits: of the next token at every position, or with `classes`, of the classes of each text.

    A language model looks back only; a classifier reads from both sides. Keyword arguments are those of
    PerformerSettings: model_dim, num_heads, layers, ff_dim, features, dropout, …
    """

    output: Embedding | ClassHead

    def __init__(self, *, vocab: int, classes: int | None = None, **settings: Any) -> None:
        super().__init__()
        self.settings = sizes = PerformerSettings.of(settings)
        self.architecture = {"vocab": vocab, "classes": classes, **sizes.model_dump(mode="json")}
        self.max_length, self.classes = sizes.longest, classes
        if sizes.model_dim % sizes.num_heads:
            raise ShapeError(f"num_heads ({sizes.num_heads}) must divide model_dim ({sizes.model_dim})")
        if classes is not None and classes < 1:
            raise ShapeError(f"a Performer has at least 1 class, or is a language model without any, not {classes}")
        inner_dropout = sizes.dropout if sizes.activation_dropout is None else sizes.activation_dropout
        make = LayerMakers(
            attention=partial(FavorAttention, sizes.model_dim, sizes.num_heads, features=sizes.features),
            feed_forward=partial(FeedForward, sizes.model_dim, sizes.ff_dim, inner_dropout, sizes.activation),
            norm=partial(nn.LayerNorm, sizes.model_dim),
            dropout=sizes.dropout,
            norm_first=sizes.norm == "pre",
        )
        self.embedding = Embedding(vocab, sizes.model_dim)
        self.positions = build_positions(sizes.positions, sizes.model_dim, sizes.max_length)
        self.dropout = Dropout(sizes.dropout)
        self.stack = Encoder(make, sizes.layers)
        if classes is not None:
            self.output = ClassHead(sizes.model_dim, classes)
        else:
            self.output = self.embedding if sizes.tie != "none" else Embedding(vocab, sizes.model_dim)

    def forward(self, ids: Tensor, lengths: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(B, T) -> logits (B, T, V), or (B, C) of classes."""
        return self.output.logits(self.states(ids, lengths, segments))

    def states(self, ids: Tensor, lengths: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(B, T) -> (B, T, D), or (B, D) of a classifier. It has no vectors for `segments`."""
        check_ids("text", ids, lengths)
        allowed = allowed_by_lengths(lengths, ids.size(1))
        x: Tensor = self.stack(self.embed(ids), allowed, causal=self.classes is None)
        if self.classes is None:
            return x
        out: Tensor = self.dropout(pool(x, lengths, self.settings.pooling))
        return out

    def embed(self, ids: Tensor, start: int = 0) -> Tensor:  # (B, T) -> (B, T, D)
        x: Tensor = self.dropout(self.positions(self.embedding(ids), start))
        return x

    # ---- decoding

    def start(self, source: tuple[Tensor, ...] | None = None, rows: int = 1) -> LanguageState:
        """Creates the state before the first token. There is no source: a prompt is the first thing to append."""
        if self.classes is not None:
            raise ShapeError("this Performer classifies: it reads from both sides and cannot write")
        return LanguageState([layer.self_attention.new_cache() for layer in self.stack.layers])  # type: ignore[operator, union-attr]

    def advance(self, state: LanguageState, tokens: Tensor) -> Tensor:
        """Appends tokens, (rows,) or a whole prompt (rows, T), and returns the states after the last, (rows, D)."""
        ids = tokens[:, None] if tokens.dim() == 1 else tokens
        check_ids("text", ids, None)
        x = self.stack(self.embed(ids, state.length), causal=True, past=state.past)
        state.length += ids.size(1)
        newest: Tensor = x[:, -1]
        return newest

    # ---- for training and for looking inside

    def shard_units(self) -> Iterator[nn.Module | list[nn.Module]]:
        yield from self.stack.layers

    def attention_names(self) -> dict[str, list[str]]:
        kind = "causal" if self.classes is None else "encoder"
        return {kind: [f"stack.layers.{number}.self_attention" for number in range(len(self.stack.layers))]}

    def entrance(self) -> nn.Module:
        return self.positions
