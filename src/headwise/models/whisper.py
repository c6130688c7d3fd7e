"""Whisper: an encoder of sound, a decoder of text (Radford et al. 2022, arXiv 2212.04356)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from headwise.config.families.whisper import WhisperSettings
from headwise.errors import ShapeError
from headwise.models.inputs import check_ids
from headwise.models.interface import DecoderParts, Network
from headwise.models.transformer import DecoderState, Memory
from headwise.nn import Decoder, Dropout, Embedding, Encoder, LayerMakers, LearnedPositions
from headwise.nn.sound_stem import SoundPositions, SoundStem


class Whisper(Network):
    """model(features, target_ids) gives the logits of the next token at every position.

    Features are log-mel, (B, frames, mels), an even number of frames. Nothing is masked: what is shorter than the
    others of its batch is padded with silence. Keyword arguments are those of WhisperSettings: mels, model_dim, …
    """

    def __init__(self, *, vocab: int, **settings: Any) -> None:
        super().__init__()
        self.settings = sizes = WhisperSettings.of(settings)
        self.architecture = {"vocab": vocab, **sizes.model_dump(mode="json")}
        self.max_length = sizes.max_length
        make = LayerMakers.standard(
            sizes.model_dim, sizes.num_heads, sizes.ff_dim, sizes.dropout, attention_dropout=sizes.attention_dropout,
            activation_dropout=sizes.activation_dropout, norm="pre", activation=sizes.activation,
        )  # fmt: skip
        self.stem = SoundStem(sizes.mels, sizes.model_dim, sizes.activation)
        self.source_positions = SoundPositions(sizes.model_dim, sizes.source_positions)
        self.target_embedding = Embedding(vocab, sizes.model_dim, scaled=False, absent=sizes.absent)
        self.output = self.target_embedding
        self.target_positions = LearnedPositions(sizes.model_dim, sizes.max_length)
        self.dropout = Dropout(sizes.dropout)
        self.encoder = Encoder(make, sizes.encoder_layers)
        self.decoder = Decoder(make, sizes.decoder_layers)

    def forward(self, features: Tensor, target_ids: Tensor, target_lengths: Tensor | None = None) -> Tensor:
        """(B, frames, mels), (B, T) -> logits (B, T, V). Position t sees target tokens 0…t and the whole sound."""
        return self.output.logits(self.states(features, target_ids, target_lengths))

    def states(self, features: Tensor, target_ids: Tensor, target_lengths: Tensor | None = None) -> Tensor:
        check_ids("target", target_ids, target_lengths)
        if features.size(0) != target_ids.size(0):
            raise ShapeError(f"the batch has {features.size(0)} sounds but {target_ids.size(0)} texts")
        # Targets are padded at their end, so the causal mask already hides the padding.
        out: Tensor = self.decoder(self.embed_target(target_ids), self.encode(features).states)
        return out

    def encode(self, features: Tensor) -> Memory:
        """Encodes the sound: (B, frames, mels) -> Memory of (B, frames / 2, D)."""
        if features.dim() != 3 or features.size(1) % 2 or not features.size(1):
            raise ShapeError(
                f"features must be (batch, frames, {self.settings.mels}) with an even number of frames, not shape "
                f"{tuple(features.shape)}"
            )
        x = self.dropout(self.source_positions(self.stem(features)))  # (B, S, D)
        return Memory(self.encoder(x), None)

    def embed_target(self, ids: Tensor, start: int = 0) -> Tensor:  # (B, T) -> (B, T, D)
        x: Tensor = self.dropout(self.target_positions(self.target_embedding(ids), start))
        return x

    # ---- decoding

    def start(self, source: tuple[Tensor, ...] | None, rows: int = 1) -> DecoderState:
        """Encodes the sound (features,) and computes the keys and values of cross-attention once."""
        if source is None:
            raise ShapeError("a transcript needs a sound: call start((features,), rows)")
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
        """Yields layers, except that the cross-attentions belong to the decoder as a whole, as in the Transformer."""
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
