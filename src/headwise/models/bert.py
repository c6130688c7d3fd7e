"""BERT: an encoder with a head for masked tokens, for labels, or with none (Devlin et al. 2019, arXiv 1810.04805)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

from torch import Tensor, nn

from headwise.config.families.bert import BertSettings
from headwise.errors import ShapeError
from headwise.models.inputs import allowed_by_lengths, check_ids, segments_of
from headwise.models.interface import Network
from headwise.nn import (
    Attention,
    Dropout,
    Embedding,
    Encoder,
    FeedForward,
    LayerMakers,
    LearnedPositions,
    MultiHeadAttention,
)
from headwise.nn.heads import ClassHead, Pooler, TokenHead, pool


class Bert(Network):
    """model(ids) gives logits: of each token (`classes` unset), or of each class, one row per text.

    With classes = 0 there is no output layer: `states` are vectors of whole texts. An input is begin, text, end of
    sentence, and for a pair of texts also the second text and another end of sentence. Keyword arguments are those of
    BertSettings: model_dim, num_heads, layers, ff_dim, dropout, …
    """

    settings_class: ClassVar[type[BertSettings]] = BertSettings

    def __init__(self, *, vocab: int, classes: int | None = None, **settings: Any) -> None:
        super().__init__()
        self.settings = sizes = self.settings_class.of(settings)
        self.architecture = {"vocab": vocab, "classes": classes, **sizes.model_dump(mode="json")}
        self.max_length, self.classes = sizes.longest, classes
        if sizes.model_dim % sizes.num_heads:
            raise ShapeError(f"num_heads ({sizes.num_heads}) must divide model_dim ({sizes.model_dim})")
        fills = classes is None
        self.embedding = Embedding(vocab, sizes.model_dim, scaled=False, absent=sizes.absent, bias=fills)
        self.positions = LearnedPositions(sizes.model_dim, sizes.max_length)
        self.segments = nn.Embedding(sizes.segments, sizes.model_dim)
        nn.init.normal_(self.segments.weight, std=sizes.model_dim**-0.5)  # as the positions
        self.norm = nn.LayerNorm(sizes.model_dim, eps=sizes.norm_epsilon)
        self.dropout = Dropout(sizes.dropout)
        self.encoder = Encoder(_makers(sizes, self.attention()), sizes.layers)
        self.pooler = self.new_pooler() if sizes.pooler and not fills else None
        if classes is None:
            self.output = TokenHead(self.embedding, sizes.activation, sizes.norm_epsilon)
        elif classes > 0:
            self.output = ClassHead(sizes.model_dim, classes)
        elif self.pooler is not None:
            self.pooler.requires_grad_(False)  # kept for whoever trains labels on it; vectors do not need it

    def forward(self, ids: Tensor, lengths: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(B, S) -> logits (B, S, V) of tokens or (B, C) of classes; vectors (B, D) where there is no output layer."""
        states = self.states(ids, lengths, segments)
        return states if self.classes == 0 else self.output.logits(states)

    def states(self, ids: Tensor, lengths: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """What the output layer reads: (B, S, D) of every token, or (B, D) of every text."""
        states = self.encode(ids, lengths, segments)
        if self.classes is None:
            return states
        pooled = pool(states, lengths, self.settings.pooling)  # (B, S, D) -> (B, D)
        if self.classes == 0:
            return pooled
        out: Tensor = self.dropout(pooled if self.pooler is None else self.pooler(pooled))
        return out

    def encode(self, ids: Tensor, lengths: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(B, S) -> (B, S, D). `segments` says which text a token belongs to; unset: an end of sentence ends one."""
        check_ids("text", ids, lengths)
        segments = segments_of(ids, self.settings.segments) if segments is None else segments
        x = self.positions(self.embedding(ids)) + self.segments(segments)  # (B, S, D)
        x = self.dropout(self.norm(x))
        out: Tensor = self.encoder(x, allowed_by_lengths(lengths, ids.size(1)), **self.options(ids, lengths))
        return out

    # ---- what relatives change

    def new_pooler(self) -> Pooler:
        return Pooler(self.settings.model_dim)

    def attention(self) -> Callable[[], Attention]:
        """The maker of each layer's self-attention."""
        sizes = self.settings
        return partial(MultiHeadAttention, sizes.model_dim, sizes.num_heads, sizes.weights_dropout)

    def options(self, ids: Tensor, lengths: Tensor | None) -> dict[str, Any]:
        """Further arguments of every self-attention."""
        return {}

    # ---- for training and for looking inside

    def shard_units(self) -> Iterator[nn.Module | list[nn.Module]]:
        yield from self.encoder.layers

    def attention_names(self) -> dict[str, list[str]]:
        return {"encoder": [f"encoder.layers.{number}.self_attention" for number in range(len(self.encoder.layers))]}

    def entrance(self) -> nn.Module:
        return self.positions


def _makers(sizes: BertSettings, attention: Callable[[], Attention]) -> LayerMakers:
    return LayerMakers(
        attention=attention,
        feed_forward=partial(FeedForward, sizes.model_dim, sizes.ff_dim, sizes.activation_dropout, sizes.activation),
        norm=partial(nn.LayerNorm, sizes.model_dim, eps=sizes.norm_epsilon),
        dropout=sizes.dropout,
        norm_first=sizes.norm == "pre",
    )
