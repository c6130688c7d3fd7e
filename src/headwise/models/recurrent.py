"""The Transformer's predecessor: a recurrent encoder and decoder, with attention or without.

`attention = "none"` is the model of Sutskever et al. 2014 (arXiv 1409.3215), in which one vector has to hold the whole
source. With `dot` or `general` it is Luong et al. 2015 (arXiv 1508.04025), with `additive` the same decoder with the
scores of Bahdanau et al. 2015 (arXiv 1409.0473).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from headwise.config.families.rnn import RecurrentSettings
from headwise.errors import ShapeError
from headwise.models.encoder_decoder import TextToText
from headwise.models.inputs import allowed_by_lengths, check_ids
from headwise.nn import Dropout, Embedding, NoPositions
from headwise.nn.global_attention import GlobalAttention, build_score
from headwise.nn.recurrent import RecurrentEncoder
from headwise.nn.recurrent_decoder import RecurrentDecoder, RecurrentState


class RecurrentSeq2Seq(TextToText):
    """model(source_ids, target_ids) gives the logits of the next token at every position, like `Transformer`.

    Keyword arguments are those of RecurrentSettings: cell, attention, input_feeding, model_dim, hidden_dim, …
    """

    def __init__(self, *, source_vocab: int, target_vocab: int | None = None, **settings: Any) -> None:
        super().__init__()
        target_vocab = source_vocab if target_vocab is None else target_vocab
        self.settings = sizes = RecurrentSettings.of(settings)
        self.architecture = {
            "source_vocab": source_vocab, "target_vocab": target_vocab, **sizes.model_dump(mode="json")
        }  # fmt: skip
        if sizes.tie == "all" and source_vocab != target_vocab:
            raise ShapeError(f"tie='all' needs one shared vocabulary, not {source_vocab} and {target_vocab} tokens")
        self.source_embedding = Embedding(source_vocab, sizes.model_dim)
        self.target_embedding = (
            self.source_embedding if sizes.tie == "all" else Embedding(target_vocab, sizes.model_dim)
        )
        self.output = self.target_embedding if sizes.tie != "none" else Embedding(target_vocab, sizes.model_dim)
        self.positions = NoPositions()  # recurrence knows the order by itself
        self.dropout = Dropout(sizes.dropout)
        self.encoder = RecurrentEncoder(
            sizes.cell, sizes.model_dim, sizes.hidden_dim, sizes.encoder_layers, sizes.bidirectional, sizes.dropout
        )
        attention = None
        if sizes.attention != "none":
            attention = GlobalAttention(build_score(sizes.attention, sizes.hidden_dim, sizes.hidden_dim))
        self.decoder = RecurrentDecoder(
            sizes.cell, sizes.model_dim, sizes.hidden_dim, sizes.decoder_layers, attention,
            input_feeding=sizes.feeds_input, dropout=sizes.dropout,
        )  # fmt: skip

    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None, rows: int = 1) -> RecurrentState:
        """Reads the source once, (B, S), and computes the keys of attention: the state before the first target."""
        if source_ids.size(1) == 0:
            raise ShapeError("a source has no token; it needs at least its end of sentence")
        allowed = allowed_by_lengths(source_lengths, source_ids.size(1))  # (B, 1, 1, S)
        if source_lengths is None:
            source_lengths = torch.full((source_ids.size(0),), source_ids.size(1), device=source_ids.device)
        x = self.dropout(self.positions(self.source_embedding(source_ids)))  # (B, S, D)
        memory, ends = self.encoder(x, source_lengths.clamp(min=1))
        return self.decoder.start(memory, ends, None if allowed is None else allowed[:, 0], rows)

    def decode(self, memory: RecurrentState, target_ids: Tensor) -> Tensor:
        # Targets are padded at their end, after all that is read: padding changes nothing before it.
        out: Tensor = self.decoder(self.embed_target(target_ids), memory)
        return out

    def embed_target(self, ids: Tensor) -> Tensor:  # (…) -> (…, D)
        x: Tensor = self.dropout(self.target_embedding(ids))
        return x

    # ---- decoding

    def start(self, source: tuple[Tensor, ...] | None, rows: int = 1) -> RecurrentState:
        """Reads the source (ids, lengths)."""
        if source is None:
            raise ShapeError("a translation starts from a source: start((source_ids, source_lengths), rows)")
        ids, lengths = source
        check_ids("source", ids, lengths)
        return self.encode(ids, lengths, rows)

    def advance(self, state: RecurrentState, tokens: Tensor) -> Tensor:
        """Appends tokens, (rows,) or (rows, T), and returns the states after the last, (rows, D)."""
        for column in tokens[:, None].unbind(1) if tokens.dim() == 1 else tokens.unbind(1):
            newest = self.decoder.advance(self.embed_target(column), state)
        return newest

    # ---- what looking asks

    def attention_names(self) -> dict[str, list[str]]:
        return {} if self.decoder.attention is None else {"cross": ["decoder.attention"]}

    def entrance(self) -> nn.Module:
        return self.positions
