"""The Transformer of 'Attention Is All You Need' (Vaswani et al. 2017, arXiv 1706.03762)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headwise.config.families.transformer import TransformerSettings
from headwise.errors import ShapeError
from headwise.models.inputs import allowed_by_lengths, build_positions, check_ids
from headwise.models.interface import DecoderParts, Network
from headwise.nn import Cache, Decoder, Dropout, Embedding, Encoder, LayerMakers


@dataclass
class Memory:
    """The encoder's output: states (B, S, D), and the mask of those that are tokens (B, 1, 1, S), None = all."""

    states: Tensor
    allowed: Tensor | None


@dataclass
class DecoderState:
    """Everything that a decoding step needs of the past. Rows are hypotheses; `group` of them share a source sentence.

    Until hypotheses differ, one row per sentence is enough: the first step may have just one, and `reorder` expands
    the rows.
    """

    cross: list[tuple[Tensor, ...]]  # each layer's keys and values of the memory, (sentences, H, S, K)
    allowed: Tensor | None  # (sentences, 1, 1, S)
    past: list[Cache]
    group: int = 1
    width: int = 1  # rows per sentence in the newest step: `group`, or 1
    length: int = 0  # tokens decoded so far

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]. Rows are then in groups of `group`, each group from one sentence."""
        for cache in self.past:
            cache.reorder(indices)
        sentences = indices.view(-1, self.group)[:, 0] // self.width
        self.width = self.group
        count = self.cross[0][0].size(0)
        if torch.equal(sentences, torch.arange(count, device=sentences.device)):
            return  # hypotheses moved within their sentences
        self.cross = [tuple(part[sentences] for part in layer) for layer in self.cross]
        if self.allowed is not None:
            self.allowed = self.allowed[sentences]


class Transformer(Network):
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
            activation_dropout=sizes.activation_dropout, norm=sizes.norm, activation=sizes.activation,
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

    def forward(
        self,
        source_ids: Tensor,
        target_ids: Tensor,
        source_lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V). Position t sees target tokens 0…t and the whole source."""
        return self.output.logits(self.states(source_ids, target_ids, source_lengths, target_lengths))

    def states(
        self,
        source_ids: Tensor,
        target_ids: Tensor,
        source_lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        check_ids("source", source_ids, source_lengths)
        check_ids("target", target_ids, target_lengths)
        if source_ids.size(0) != target_ids.size(0):
            raise ShapeError(f"the batch has {source_ids.size(0)} sources but {target_ids.size(0)} targets")
        memory = self.encode(source_ids, source_lengths)
        # Targets are padded at their end, so the causal mask already hides the padding.
        out: Tensor = self.decoder(self.embed_target(target_ids), memory.states, memory.allowed)
        return out

    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Memory:
        """Encodes the source: (B, S) -> Memory of (B, S, D)."""
        check_ids("source", source_ids, source_lengths)
        allowed = allowed_by_lengths(source_lengths, source_ids.size(1))
        x = self.dropout(self.source_positions(self.source_embedding(source_ids)))  # (B, S, D)
        return Memory(self.encoder(x, allowed), allowed)

    def embed_target(self, ids: Tensor, start: int = 0) -> Tensor:  # (B, T) -> (B, T, D)
        x: Tensor = self.dropout(self.target_positions(self.target_embedding(ids), start))
        return x

    # ---- decoding

    def start(self, source: tuple[Tensor, ...] | None, rows: int = 1) -> DecoderState:
        """Encodes the source (ids, lengths) and computes the keys and values of cross-attention once."""
        if source is None:
            raise ShapeError("a translation needs a source: call start((source_ids, source_lengths), rows)")
        memory = self.encode(*source)
        past = [layer.self_attention.new_cache() for layer in self.decoder.layers]  # type: ignore[operator, union-attr]
        return DecoderState(self.decoder.keys_values(memory.states), memory.allowed, past, rows, rows)

    def advance(self, state: DecoderState, tokens: Tensor) -> Tensor:
        """Appends tokens, (rows,) or (rows, T), and returns the states after the last, (rows, D)."""
        ids = tokens[:, None] if tokens.dim() == 1 else tokens
        state.width = ids.size(0) // state.cross[0][0].size(0)
        x = self.embed_target(ids, state.length)  # (rows, T, D)
        x = self.decoder.advance(x, state.cross, state.allowed, past=state.past)
        state.length += ids.size(1)
        return x[:, -1]

    def decoder_parts(self) -> DecoderParts:
        return DecoderParts(self.embed_target, self.decoder.layers, self.decoder.norm)

    # ---- for training and for looking inside

    def shard_units(self) -> Iterator[nn.Module | list[nn.Module]]:
        """Yields layers, except that the cross-attentions belong to the decoder as a whole: it computes the keys and
        values of all of them before its first layer runs."""
        yield from self.encoder.layers
        for layer in self.decoder.layers:
            yield [layer.self_attention, layer.feed_forward]  # type: ignore[list-item]
        yield self.decoder

    def attention_names(self) -> dict[str, list[str]]:
        encoder, decoder = (range(len(stack.layers)) for stack in (self.encoder, self.decoder))
        return {
            "encoder": [f"encoder.layers.{number}.self_attention" for number in encoder],
            "decoder": [f"decoder.layers.{number}.self_attention" for number in decoder],
            "cross": [f"decoder.layers.{number}.cross_attention" for number in decoder],
        }

    def entrance(self) -> nn.Module:
        return self.source_positions
