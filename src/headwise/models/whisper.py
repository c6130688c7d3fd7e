"""Whisper: an encoder of sound, a decoder of text (Radford et al. 2022, arXiv 2212.04356)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from headwise.config.families.whisper import WhisperSettings
from headwise.errors import ShapeError
from headwise.models.encoder_decoder import EncoderDecoder, Memory
from headwise.models.inputs import check_ids
from headwise.nn import Decoder, Dropout, Embedding, Encoder, LayerMakers, LearnedPositions
from headwise.nn.sound_stem import SoundPositions, SoundStem


class Whisper(EncoderDecoder):
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
        self.stem = SoundStem(sizes.mels, sizes.model_dim)
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
        return self.decode(self.encode(features), target_ids)

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

    def entrance(self) -> nn.Module:
        return self.source_positions

    def probe(self) -> tuple[Tensor, ...]:
        """A fixed sound and text."""
        frames = 2 * min(10, self.settings.source_positions)
        sound = torch.arange(frames * self.settings.mels, dtype=torch.float64).sin()
        return sound.float().view(1, frames, -1), *super().probe()
