"""What networks with an encoder and a decoder of plain layers share: decoding by token, sharding, looking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.models.inputs import check_ids
from headwise.models.interface import DecoderParts, Network
from headwise.nn import Cache, Decoder, Encoder
from headwise.text.tokenizer import BOS, EOS, PAD


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


class EncoderDecoder(Network):
    """Base of networks whose `encoder` reads a source and whose `decoder` writes a target that attends to it."""

    encoder: Encoder
    decoder: Decoder

    def encode(self, *source: Any) -> Memory:
        """Encodes the source, whatever it is, to a Memory of (B, S, D)."""
        raise NotImplementedError

    def embed_target(self, ids: Tensor, start: int = 0) -> Tensor:
        """Embeds target tokens, of which the first is at position `start`: (B, T) -> (B, T, D)."""
        raise NotImplementedError

    def target_bias(self, queries: int, keys: int) -> Tensor | None:
        """Returns what is added to the scores of the decoder's self-attention, (1, H, T, S): the last T of S tokens."""
        return None

    def decode(self, memory: Memory, target_ids: Tensor) -> Tensor:
        """Computes the states of a whole target in one masked pass: (B, T) -> (B, T, D)."""
        length = target_ids.size(1)
        # Targets are padded at their end, so the causal mask already hides the padding.
        out: Tensor = self.decoder(
            self.embed_target(target_ids), memory.states, memory.allowed, bias=self.target_bias(length, length)
        )
        return out

    # ---- decoding

    def start(self, source: tuple[Tensor, ...] | None, rows: int = 1) -> DecoderState:
        """Encodes the source (the arguments of `encode`) and computes the keys and values of cross-attention once."""
        if source is None:
            raise ShapeError("a target needs a source: call start((source, …), rows)")
        memory = self.encode(*source)
        past = [layer.self_attention.new_cache() for layer in self.decoder.layers]  # type: ignore[operator, union-attr]
        return DecoderState(self.decoder.keys_values(memory.states), memory.allowed, past, rows, rows)

    def advance(self, state: DecoderState, tokens: Tensor) -> Tensor:
        """Appends tokens, (rows,) or (rows, T), and returns the states after the last, (rows, D)."""
        ids = tokens[:, None] if tokens.dim() == 1 else tokens
        state.width = ids.size(0) // state.cross[0][0].size(0)
        x = self.embed_target(ids, state.length)  # (rows, T, D)
        state.length += ids.size(1)
        bias = self.target_bias(ids.size(1), state.length)
        x = self.decoder.advance(x, state.cross, state.allowed, past=state.past, bias=bias)
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


class TextToText(Network):
    """Base of networks of token ids: model(source_ids, target_ids) gives the logits of the next token."""

    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Any:
        """Reads the source once, (B, S): all that `decode` needs of it."""
        raise NotImplementedError

    def decode(self, memory: Any, target_ids: Tensor) -> Tensor:
        """Computes the states of a whole target: (B, T) -> (B, T, D)."""
        raise NotImplementedError

    def start(self, source: tuple[Tensor, ...] | None, rows: int = 1) -> Any:
        raise NotImplementedError

    def advance(self, state: Any, tokens: Tensor) -> Tensor:
        raise NotImplementedError

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
        return self.decode(self.encode(source_ids, source_lengths), target_ids)

    @torch.inference_mode()
    def generate(self, source_ids: Tensor, max_tokens: int, source_lengths: Tensor | None = None) -> Tensor:
        """Writes the likeliest next token, step by step: (B, S) -> (B, T), each with its end of sentence, then padded.

        At most `max_tokens` are written. `headwise.load` gives an object that searches with beams, and reads and writes
        text.
        """
        if max_tokens < 1 or (self.max_length is not None and max_tokens > self.max_length):
            raise ShapeError(f"max_tokens must be from 1 to {self.max_length or 'any number'}, not {max_tokens}")
        trained, written = self.training, []
        self.eval()
        lengths = torch.full_like(source_ids[:, 0], source_ids.size(1)) if source_lengths is None else source_lengths
        state = self.start((source_ids, lengths))
        newest = torch.full_like(source_ids[:, 0], BOS)  # (B,)
        ended = torch.zeros_like(newest, dtype=torch.bool)
        for _ in range(max_tokens):
            logits = self.output.logits(self.advance(state, newest))  # (B, V)
            newest = logits.argmax(dim=-1).masked_fill(ended, PAD)
            written.append(newest)
            ended |= newest == EOS
            if ended.all():
                break
        self.train(trained)
        return torch.stack(written, dim=1)
