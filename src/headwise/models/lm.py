"""A language model: the encoder stack with a causal mask, the architecture of a decoder-only GPT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headwise.config.families.lm import LanguageModelSettings
from headwise.errors import ShapeError
from headwise.models.inputs import allowed_by_lengths, build_positions, build_table, check_ids
from headwise.models.interface import DecoderParts, Network
from headwise.nn import Cache, Dropout, Encoder, LayerMakers, RotaryPositions


@dataclass
class LanguageState:
    """What every layer keeps of the tokens so far."""

    past: list[Cache]
    length: int = 0

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]."""
        for cache in self.past:
            cache.reorder(indices)


class LanguageModel(Network):
    """Predicts the next token: lm(ids) gives its logits at every position; position t depends on tokens 0…t only.

    Keyword arguments are those of LanguageModelSettings: model_dim, num_heads, layers, ff_dim, dropout, norm, …
    """

    def __init__(self, *, vocab: int, **settings: Any) -> None:
        super().__init__()
        self.settings = sizes = LanguageModelSettings.of(settings)
        self.architecture = {"vocab": vocab, **sizes.model_dump(mode="json")}
        self.max_length = sizes.longest
        if sizes.model_dim % sizes.num_heads:
            raise ShapeError(f"num_heads ({sizes.num_heads}) must divide model_dim ({sizes.model_dim})")
        rotary = RotaryPositions(sizes.model_dim // sizes.num_heads) if sizes.positions == "rotary" else None
        make = LayerMakers.standard(
            sizes.model_dim, sizes.num_heads, sizes.ff_dim, sizes.dropout, attention_dropout=sizes.attention_dropout,
            activation_dropout=sizes.activation_dropout, norm=sizes.norm, norm_epsilon=sizes.norm_epsilon,
            activation=sizes.activation, rotary=rotary,
        )  # fmt: skip
        table = partial(
            build_table, vocab, sizes.model_dim, sizes.cutoffs, scaled=sizes.scale_embeddings, absent=sizes.absent
        )
        self.embedding = table()
        self.output = self.embedding if sizes.tie != "none" else table()
        self.positions = build_positions(sizes.positions, sizes.model_dim, sizes.max_length)
        self.dropout = Dropout(sizes.dropout)
        self.stack = Encoder(make, sizes.layers)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(B, T) -> logits (B, T, V)."""
        return self.output.logits(self.states(ids, lengths))

    def states(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        check_ids("text", ids, lengths)
        out: Tensor = self.stack(self.embed(ids), allowed_by_lengths(lengths, ids.size(1)), causal=True)
        return out

    def embed(self, ids: Tensor, start: int = 0) -> Tensor:  # (B, T) -> (B, T, D)
        x: Tensor = self.dropout(self.positions(self.embedding(ids), start))
        return x

    # ---- decoding

    def start(self, source: tuple[Tensor, ...] | None = None, rows: int = 1) -> LanguageState:
        """Creates the state before the first token. There is no source: a prompt is the first thing to append."""
        return LanguageState([layer.self_attention.new_cache() for layer in self.stack.layers])  # type: ignore[operator, union-attr]

    def advance(self, state: LanguageState, tokens: Tensor) -> Tensor:
        """Appends tokens, (rows,) or a whole prompt (rows, T), and returns the states after the last, (rows, D)."""
        ids = tokens[:, None] if tokens.dim() == 1 else tokens
        check_ids("text", ids, None)
        x = self.stack(self.embed(ids, state.length), causal=True, past=state.past)
        state.length += ids.size(1)
        newest: Tensor = x[:, -1]
        return newest

    @torch.inference_mode()
    def generate(self, ids: Tensor, max_tokens: int, temperature: float = 0.0, top_k: int = 0) -> Tensor:
        """Continues ids (B, T) by `max_tokens` tokens: the likeliest ones, or samples. Returns (B, T + max_tokens).

        Samples come from torch's generator: torch.manual_seed repeats them. `headwise.load` gives an object that reads
        and writes text.
        """
        if max_tokens < 1 or ids.size(1) < 1:
            raise ShapeError("generate needs at least one token to continue, and max_tokens of at least 1")
        if self.max_length is not None and ids.size(1) + max_tokens - 1 > self.max_length:
            total = ids.size(1) + max_tokens
            raise ShapeError(f"{total} tokens do not fit: the model reads at most {self.max_length} at once")
        trained, out = self.training, ids
        self.eval()
        state, newest = self.start(), ids
        for _ in range(max_tokens):
            logits = self.output.logits(self.advance(state, newest))  # (B, V)
            newest = _choose(logits, temperature, top_k)[:, None]  # (B, 1)
            out = torch.cat([out, newest], dim=1)
        self.train(trained)
        return out

    def decoder_parts(self) -> DecoderParts:
        return DecoderParts(self.embed, self.stack.layers, self.stack.norm)

    # ---- for training and for looking inside

    def shard_units(self) -> Iterator[nn.Module | list[nn.Module]]:
        yield from self.stack.layers

    def attention_names(self) -> dict[str, list[str]]:
        return {"causal": [f"stack.layers.{number}.self_attention" for number in range(len(self.stack.layers))]}

    def entrance(self) -> nn.Module:
        return self.positions


def _choose(logits: Tensor, temperature: float, top_k: int) -> Tensor:  # (B, V) -> (B,)
    if temperature <= 0:
        return logits.argmax(dim=-1)
    if 0 < top_k < logits.size(1):
        least = logits.topk(top_k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    return torch.multinomial((logits / temperature).softmax(dim=-1), 1)[:, 0]
