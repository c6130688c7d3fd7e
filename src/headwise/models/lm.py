"""A language model: the encoder stack with a causal mask, which is the same machine as a decoder-only GPT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.models.inputs import allowed_by_lengths, build_positions, check_ids
from headwise.nn import AdaptiveEmbedding, Dropout, Embedding, Encoder, KeyValueCache, LayerSpec, RotaryPositions


@dataclass
class LanguageState:
    """Keys and values of every token so far, a cache a layer."""

    past: list[KeyValueCache]
    length: int = 0

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]."""
        for cache in self.past:
            cache.reorder(indices)


class LanguageModel(nn.Module):
    """lm(ids) gives the logits of the next token at every position; position t depends on tokens 0…t only."""

    def __init__(
        self,
        *,
        vocab: int,
        model_dim: int = 256,
        num_heads: int = 8,
        layers: int = 4,
        ff_dim: int = 512,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        activation_dropout: float | None = None,
        norm: str = "post",
        activation: str = "relu",
        positions: str = "sinusoidal",
        max_length: int = 1024,
        tie: str = "all",
        cutoffs: Sequence[int] = (),
        scale_embeddings: bool = True,
    ) -> None:
        super().__init__()
        if tie not in ("all", "target", "none"):
            raise ShapeError(f"tie must be 'all', 'target' or 'none', not '{tie}'")
        self.architecture: dict[str, Any] = {
            "vocab": vocab, "model_dim": model_dim, "num_heads": num_heads, "layers": layers, "ff_dim": ff_dim,
            "dropout": dropout, "attention_dropout": attention_dropout, "activation_dropout": activation_dropout,
            "norm": norm, "activation": activation, "positions": positions, "max_length": max_length, "tie": tie,
            "cutoffs": list(cutoffs), "scale_embeddings": scale_embeddings,
        }  # fmt: skip
        if model_dim % num_heads:
            raise ShapeError(f"num_heads ({num_heads}) must divide model_dim ({model_dim})")
        rotary = RotaryPositions(model_dim // num_heads) if positions == "rotary" else None
        spec = LayerSpec(
            model_dim, num_heads, ff_dim, dropout,
            dropout if attention_dropout is None else attention_dropout,
            dropout if activation_dropout is None else activation_dropout,
            norm, activation, rotary,
        )  # fmt: skip
        self.embedding = _table(vocab, model_dim, cutoffs, scale_embeddings)
        self.output = self.embedding if tie != "none" else _table(vocab, model_dim, cutoffs, scale_embeddings)
        self.positions = build_positions(positions, model_dim, max_length)
        self.dropout = Dropout(dropout)
        self.stack = Encoder(spec, layers)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(B, T) -> logits (B, T, V)."""
        return self.project(self.states(ids, lengths))

    def states(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """What `project` turns into logits: (B, T, D)."""
        check_ids("text", ids, lengths)
        x = self.dropout(self.positions(self.embedding(ids)))  # (B, T, D)
        out: Tensor = self.stack(x, allowed_by_lengths(lengths, ids.size(1)), causal=True)
        return out

    def project(self, states: Tensor) -> Tensor:  # (…, D) -> (…, V)
        return self.output.logits(states)

    def start(self) -> LanguageState:
        """A state before the first token."""
        return LanguageState([KeyValueCache() for _ in self.stack.layers])

    def step(self, state: LanguageState, tokens: Tensor) -> Tensor:
        """Appends tokens, (rows,) or a whole prompt (rows, T), and returns the logits after the last, (rows, V)."""
        ids = tokens[:, None] if tokens.dim() == 1 else tokens
        check_ids("text", ids, None)
        x = self.dropout(self.positions(self.embedding(ids), state.length))  # (rows, T, D)
        x = self.stack(x, causal=True, past=state.past)
        state.length += ids.size(1)
        return self.project(x[:, -1])


def _table(vocab: int, model_dim: int, cutoffs: Sequence[int], scaled: bool) -> Embedding | AdaptiveEmbedding:
    """Vectors of the words, for input and output: all of one width, or narrower from each cut-off on."""
    if cutoffs:
        return AdaptiveEmbedding(vocab, model_dim, cutoffs, scaled)
    return Embedding(vocab, model_dim, scaled)
