"""The Transformer of 'Attention Is All You Need' (Vaswani et al. 2017, arXiv 1706.03762)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.models.inputs import allowed_by_lengths, build_positions, check_ids
from headwise.nn import Decoder, Dropout, Embedding, Encoder, KeyValueCache, LayerSpec


@dataclass
class Memory:
    """What the encoder made of the source: states (B, S, D) and which of them are tokens (B, 1, 1, S), None = all."""

    states: Tensor
    allowed: Tensor | None


@dataclass
class DecoderState:
    """All that a decoding step needs of the past. Rows are hypotheses; `beam` of them share a source sentence.

    Before they first differ one row a sentence is enough: the first step may have only that, and `reorder` makes more.
    """

    cross: list[tuple[Tensor, Tensor]]  # a layer's keys and values of the memory, (sentences, H, S, K)
    allowed: Tensor | None  # (sentences, 1, 1, S)
    past: list[KeyValueCache]
    beam: int = 1
    width: int = 1  # rows a sentence had in the newest step: `beam`, or 1
    length: int = 0  # tokens decoded so far

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]. Then rows are in groups of `beam`, each group from one sentence."""
        for cache in self.past:
            cache.reorder(indices)
        sentences = indices.view(-1, self.beam)[:, 0] // self.width
        self.width = self.beam
        count = self.cross[0][0].size(0)
        if torch.equal(sentences, torch.arange(count, device=sentences.device)):
            return  # hypotheses moved within their sentences
        self.cross = [(key[sentences], value[sentences]) for key, value in self.cross]
        if self.allowed is not None:
            self.allowed = self.allowed[sentences]


class Transformer(nn.Module):
    """Encoder and decoder: model(source_ids, target_ids) gives the logits of the next token at every position."""

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int | None = None,
        model_dim: int = 512,
        num_heads: int = 8,
        encoder_layers: int = 6,
        decoder_layers: int = 6,
        ff_dim: int = 2048,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        activation_dropout: float | None = None,
        norm: str = "post",
        activation: str = "relu",
        positions: str = "sinusoidal",
        max_length: int = 1024,
        tie: str = "all",
        final_norm: bool | None = None,
    ) -> None:
        super().__init__()
        target_vocab = source_vocab if target_vocab is None else target_vocab
        if tie not in ("all", "target", "none"):
            raise ShapeError(f"tie must be 'all', 'target' or 'none', not '{tie}'")
        if positions == "rotary":
            raise ShapeError("rotary positions are for language models; a translator takes sinusoidal or learned ones")
        if tie == "all" and source_vocab != target_vocab:
            raise ShapeError(f"tie='all' needs one shared vocabulary, not {source_vocab} and {target_vocab} tokens")
        self.architecture: dict[str, Any] = {
            "source_vocab": source_vocab, "target_vocab": target_vocab, "model_dim": model_dim, "num_heads": num_heads,
            "encoder_layers": encoder_layers, "decoder_layers": decoder_layers, "ff_dim": ff_dim, "dropout": dropout,
            "attention_dropout": attention_dropout, "activation_dropout": activation_dropout, "norm": norm,
            "activation": activation, "positions": positions, "max_length": max_length, "tie": tie,
            "final_norm": final_norm,
        }  # fmt: skip
        spec = LayerSpec(
            model_dim, num_heads, ff_dim, dropout,
            dropout if attention_dropout is None else attention_dropout,
            dropout if activation_dropout is None else activation_dropout,
            norm, activation,
        )  # fmt: skip
        # Section 3.4: the two embeddings and the output projection share one matrix (tie="all").
        self.source_embedding = Embedding(source_vocab, model_dim)
        self.target_embedding = self.source_embedding if tie == "all" else Embedding(target_vocab, model_dim)
        self.output = self.target_embedding if tie != "none" else Embedding(target_vocab, model_dim)
        self.source_positions = build_positions(positions, model_dim, max_length)
        self.target_positions = build_positions(positions, model_dim, max_length)
        self.dropout = Dropout(dropout)  # section 5.4: on the sums of embeddings and positions
        self.encoder = Encoder(spec, encoder_layers, final_norm)
        self.decoder = Decoder(spec, decoder_layers, final_norm)

    def forward(
        self,
        source_ids: Tensor,
        target_ids: Tensor,
        source_lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V). Position t sees target tokens 0…t and the whole source."""
        return self.project(self.states(source_ids, target_ids, source_lengths, target_lengths))

    def states(
        self,
        source_ids: Tensor,
        target_ids: Tensor,
        source_lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        """What `project` turns into logits, (B, T, D). The training loss starts here and never holds all logits."""
        check_ids("source", source_ids, source_lengths)
        check_ids("target", target_ids, target_lengths)
        if source_ids.size(0) != target_ids.size(0):
            raise ShapeError(f"{source_ids.size(0)} sources but {target_ids.size(0)} targets in one batch")
        memory = self.encode(source_ids, source_lengths)
        # Targets are padded at their end, and the causal mask hides what comes later: padding is never looked at.
        x = self._embed_target(target_ids, 0)
        out: Tensor = self.decoder(x, memory.states, memory.allowed)
        return out

    def project(self, states: Tensor) -> Tensor:  # (…, D) -> (…, V)
        return self.output.logits(states)

    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Memory:
        """Reads the source once: (B, S) -> Memory of (B, S, D)."""
        check_ids("source", source_ids, source_lengths)
        allowed = allowed_by_lengths(source_lengths, source_ids.size(1))
        x = self.dropout(self.source_positions(self.source_embedding(source_ids)))  # (B, S, D)
        return Memory(self.encoder(x, allowed), allowed)

    def start(self, memory: Memory, beam: int = 1) -> DecoderState:
        """A state before the first token: `beam` rows a sentence, cross-attention's keys and values computed once."""
        layers = len(self.decoder.layers)
        cross = self.decoder.keys_values(memory.states)
        return DecoderState(cross, memory.allowed, [KeyValueCache() for _ in range(layers)], beam, beam)

    def step(self, state: DecoderState, tokens: Tensor) -> Tensor:
        """Appends one token a row, (rows,), and returns the logits of the next, (rows, V)."""
        if tokens.dim() != 1:
            raise ShapeError(f"step takes one token a row, shape (rows,), not {tuple(tokens.shape)}")
        state.width = tokens.numel() // state.cross[0][0].size(0)
        x = self._embed_target(tokens[:, None], state.length)  # (rows, 1, D)
        x = self.decoder.advance(x, state.cross, state.allowed, state.past)
        state.length += 1
        return self.project(x[:, 0])

    def _embed_target(self, ids: Tensor, start: int) -> Tensor:  # (B, T) -> (B, T, D)
        x: Tensor = self.dropout(self.target_positions(self.target_embedding(ids), start))
        return x
