"""T5, the 'Text-to-Text Transfer Transformer' (Raffel et al. 2020, arXiv 1910.10683), versions 1.0 and 1.1.

What differs from the paper's Transformer: pre-norm by RMSNorm; no biases; scores are not divided by √d_k (the queries'
weights start smaller instead); positions are a bias on the scores of self-attention, one table per stack. Version 1.1
has a gated feed-forward network and an output matrix of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headwise.config.families.t5 import T5Settings
from headwise.models.encoder_decoder import DecoderState, EncoderDecoder, Memory, TextToText
from headwise.models.inputs import allowed_by_lengths, check_ids
from headwise.models.interface import DecoderParts
from headwise.nn import (
    Decoder,
    Dropout,
    Embedding,
    Encoder,
    FeedForward,
    GatedFeedForward,
    LayerMakers,
    MultiHeadAttention,
    NoPositions,
    RelativeBias,
    RMSNorm,
)


class T5(EncoderDecoder, TextToText):
    """model(source_ids, target_ids) gives the logits of the next token at every position, like `Transformer`.

    Keyword arguments are those of T5Settings: model_dim, num_heads, head_dim, encoder_layers, decoder_layers, ff_dim,
    activation, gated, tie, buckets, max_distance, dropout, …
    """

    def __init__(self, *, vocab: int, **settings: Any) -> None:
        super().__init__()
        self.settings = sizes = T5Settings.of(settings)
        self.architecture = {"vocab": vocab, **sizes.model_dump(mode="json")}
        make = _makers(sizes)
        table = partial(Embedding, vocab, sizes.model_dim, scaled=False, absent=sizes.absent)
        self.embedding = table()
        self.output = self.embedding if sizes.tie == "all" else table()
        # A tied table has embeddings of variance 1: logits of normalised states would have variance D.
        self.scale = sizes.model_dim**-0.5 if sizes.tie == "all" else 1.0
        self.positions = NoPositions()  # positions are in the scores of attention
        self.dropout = Dropout(sizes.dropout)
        bias = partial(RelativeBias, sizes.num_heads, sizes.buckets, sizes.max_distance)
        self.encoder_bias, self.decoder_bias = bias(two_sided=True), bias(two_sided=False)
        self.encoder = Encoder(make, sizes.encoder_layers)
        self.decoder = Decoder(make, sizes.decoder_layers)
        _initialise(self)

    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Memory:
        """Encodes the source: (B, S) -> Memory of (B, S, D)."""
        check_ids("source", source_ids, source_lengths)
        length = source_ids.size(1)
        allowed = allowed_by_lengths(source_lengths, length)
        x = self.dropout(self.positions(self.embedding(source_ids)))  # (B, S, D)
        x = self.encoder(x, allowed, bias=self.encoder_bias(length, length))
        return Memory(self.dropout(x), allowed)

    def embed_target(self, ids: Tensor, start: int = 0) -> Tensor:  # (B, T) -> (B, T, D)
        x: Tensor = self.dropout(self.embedding(ids))
        return x

    def target_bias(self, queries: int, keys: int) -> Tensor:
        bias: Tensor = self.decoder_bias(queries, keys)
        return bias

    def decode(self, memory: Memory, target_ids: Tensor) -> Tensor:
        x: Tensor = self.dropout(super().decode(memory, target_ids))
        return x * self.scale

    # ---- decoding

    def advance(self, state: DecoderState, tokens: Tensor) -> Tensor:
        return super().advance(state, tokens) * self.scale

    def decoder_parts(self) -> DecoderParts:
        return replace(
            super().decoder_parts(), bias=lambda length: self.target_bias(1, length)[0, :, 0], scale=self.scale
        )

    def position_biases(self) -> dict[str, nn.Module]:
        return {"encoder": self.encoder_bias, "decoder": self.decoder_bias}

    def entrance(self) -> nn.Module:
        return self.positions

    def probe(self) -> tuple[Tensor, ...]:
        """The same tokens as source and as target."""
        return super().probe() * 2


def _makers(sizes: T5Settings) -> LayerMakers:
    weights_dropout = sizes.dropout if sizes.attention_dropout is None else sizes.attention_dropout
    inner_dropout = sizes.dropout if sizes.activation_dropout is None else sizes.activation_dropout
    attention = partial(
        MultiHeadAttention, sizes.model_dim, sizes.num_heads, weights_dropout, bias=False, head_dim=sizes.head_dim,
        scale=1.0,
    )  # fmt: skip
    feed_forward = GatedFeedForward if sizes.gated else partial(FeedForward, bias=False)
    return LayerMakers(
        attention=attention,
        cross_attention=attention,
        feed_forward=partial(feed_forward, sizes.model_dim, sizes.ff_dim, inner_dropout, sizes.activation),
        norm=partial(RMSNorm, sizes.model_dim),
        dropout=sizes.dropout,
        norm_first=True,
    )


@torch.no_grad()
def _initialise(model: T5) -> None:
    """Every matrix keeps the variance of its input, and the queries' also divides scores by √K, as in T5's own code."""
    sizes = model.settings
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            query, key, value = module.query_key_value.weight.chunk(3)
            query.normal_(std=(sizes.model_dim * sizes.head_dim) ** -0.5)
            key.normal_(std=sizes.model_dim**-0.5)
            value.normal_(std=sizes.model_dim**-0.5)
            module.output.weight.normal_(std=module.output.in_features**-0.5)
        elif isinstance(module, FeedForward | GatedFeedForward):
            for linear in module.children():
                if isinstance(linear, nn.Linear):
                    linear.weight.normal_(std=linear.in_features**-0.5)
        elif isinstance(module, RelativeBias):
            module.weight.normal_(std=sizes.model_dim**-0.5)
    model.embedding.weight.normal_()  # an untied output matrix keeps its small start, or logits would be too large
