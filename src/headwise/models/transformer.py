"""The Transformer of 'Attention Is All You Need' (Vaswani et al. 2017, arXiv 1706.03762)."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headwise.config.families.transformer import TransformerSettings
from headwise.errors import ShapeError
from headwise.models.encoder_decoder import EncoderDecoder, Memory, TextToText
from headwise.models.inputs import allowed_by_lengths, build_positions, check_ids
from headwise.nn import Decoder, Dropout, Embedding, Encoder, LayerMakers


class Transformer(EncoderDecoder, TextToText):
    """The encoder-decoder: model(source_ids, target_ids) gives the logits of the next token at every position.

    Keyword arguments are those of TransformerSettings: model_dim, num_heads, encoder_layers, decoder_layers, ff_dim,
    dropout, norm, activation, positions, tie, …
    """

    def __init__(self, *, source_vocab: int, target_vocab: int | None = None, **settings: Any) -> None:
        super().__init__()
        target_vocab = source_vocab if target_vocab is None else target_vocab
        self.settings = sizes = TransformerSettings.of(settings)
        self.architecture = {
            "source_vocab": source_vocab, "target_vocab": target_vocab, **sizes.model_dump(mode="json")
        }  # fmt: skip
        self.max_length = sizes.longest
        if sizes.tie == "all" and source_vocab != target_vocab:
            raise ShapeError(f"tie='all' needs one shared vocabulary, not {source_vocab} and {target_vocab} tokens")
        make = LayerMakers.standard(
            sizes.model_dim, sizes.num_heads, sizes.ff_dim, sizes.dropout, attention_dropout=sizes.attention_dropout,
            activation_dropout=sizes.activation_dropout, norm=sizes.norm, norm_epsilon=sizes.norm_epsilon,
            activation=sizes.activation,
        )  # fmt: skip
        # Section 3.4: the two embeddings and the output projection share one matrix (tie="all").
        table = partial(Embedding, model_dim=sizes.model_dim, absent=sizes.absent)
        shared = sizes.tie == "all"
        self.source_embedding = table(source_vocab, bias=shared and sizes.output_bias)
        self.target_embedding = (
            self.source_embedding if shared else table(target_vocab, bias=sizes.tie == "target" and sizes.output_bias)
        )
        self.output = self.target_embedding if sizes.tie != "none" else table(target_vocab, bias=sizes.output_bias)
        self.source_positions = build_positions(sizes.positions, sizes.model_dim, sizes.max_length)
        self.target_positions = build_positions(sizes.positions, sizes.model_dim, sizes.max_length)
        self.dropout = Dropout(sizes.dropout)  # section 5.4: on the sums of embeddings and positions
        self.encoder = Encoder(make, sizes.encoder_layers, sizes.final_norm)
        self.decoder = Decoder(make, sizes.decoder_layers, sizes.final_norm)

    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Memory:
        """Encodes the source: (B, S) -> Memory of (B, S, D)."""
        check_ids("source", source_ids, source_lengths)
        allowed = allowed_by_lengths(self._seen(source_ids, source_lengths), source_ids.size(1))
        x = self.dropout(self.source_positions(self.source_embedding(source_ids)))  # (B, S, D)
        return Memory(self.encoder(x, allowed), allowed)

    def _seen(self, ids: Tensor, lengths: Tensor | None) -> Tensor | None:
        """How many tokens of each source are attended to, (B,): the end of sentence may be left out."""
        if self.settings.source_end:
            return lengths
        whole = torch.full((ids.size(0),), ids.size(1), device=ids.device) if lengths is None else lengths
        return (whole - 1).clamp_min(1)  # an empty source has nothing but its end

    def embed_target(self, ids: Tensor, start: int = 0) -> Tensor:  # (B, T) -> (B, T, D)
        x: Tensor = self.dropout(self.target_positions(self.target_embedding(ids), start))
        return x

    def entrance(self) -> nn.Module:
        return self.source_positions
