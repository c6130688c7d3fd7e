"""Whisper: from sound to text (Radford et al. 2022, arXiv 2212.04356)."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field, model_validator

from headwise.config.family import LARGEST, Activation, Family, Fraction, Positive, Settings

POSITIONS_PER_SECOND = 50  # of the encoder: two frames of features become one position
MOST_POSITIONS = 30_000  # ten minutes; beyond that attention over the sound is out of reach


class WhisperSettings(Settings):
    """The defaults are Whisper tiny."""

    mels: Annotated[int, Field(ge=1, le=1024)] = Field(80, description="mel bins: numbers per frame of sound")
    model_dim: Annotated[int, Field(ge=4, le=LARGEST, multiple_of=2)] = Field(
        384, description="width of every layer; even"
    )
    num_heads: Positive = Field(6, description="attention heads; must divide model_dim")
    encoder_layers: Positive = Field(4, description="layers of the encoder")
    decoder_layers: Positive = Field(4, description="layers of the decoder")
    ff_dim: Positive = Field(1536, description="inner width of the feed-forward network")
    dropout: Fraction = Field(0.0, description="on sub-layer outputs, and on embeddings + positions")
    attention_dropout: Fraction | None = Field(None, description="on attention weights; unset: same as dropout")
    activation_dropout: Fraction | None = Field(None, description="inside the feed-forward; unset: same as dropout")
    activation: Activation = Field("gelu", description="of the feed-forward networks")
    source_positions: Annotated[int, Field(ge=2, le=MOST_POSITIONS)] = Field(
        1500, description="the window: the longest sound that is read at once, 50 positions per second"
    )
    padding: Annotated[int, Field(ge=1, le=MOST_POSITIONS)] | None = Field(
        None,
        description="sound is padded with silence to a multiple of so many positions; unset: to the whole window, as "
        "published models need it",
    )
    max_length: Positive = Field(448, description="longest text, in tokens, with what stands before it")
    absent: int = Field(
        0, ge=0, le=3, description="how many of padding, unknown and begin a published model has no vectors for"
    )

    @model_validator(mode="after")
    def _padding_fits(self) -> WhisperSettings:
        if self.padding is not None and self.padding > self.source_positions:
            raise ValueError(f"at least as many source_positions as padding ({self.padding})")
        return self

    @property
    def longest(self) -> int | None:
        return self.max_length

    @property
    def window(self) -> int:
        """The longest sound, in frames of features."""
        return 2 * self.source_positions

    def padded(self, frames: int) -> int:
        """How many frames a sound of so many is padded to: a function of its length alone, whatever its batch."""
        unit = 2 * (self.padding or self.source_positions)
        return min(self.window, max(1, -(-frames // unit)) * unit)


FAMILY = Family(
    name="whisper",
    about="an encoder of sound and a decoder of text: transcribes",
    tasks=("transcribe",),
    network="headwise.models.whisper:Whisper",
    settings=WhisperSettings,
    sizes=("vocab",),
    presets={
        # For small data of one's own: windows of ten seconds, padded to half seconds.
        "whisper-micro": {
            "model_dim": 128, "num_heads": 4, "encoder_layers": 4, "decoder_layers": 2, "ff_dim": 512, "dropout": 0.1,
            "attention_dropout": 0.0, "activation_dropout": 0.0,  # costs a third of the time and helps little
            "source_positions": 500, "padding": 25, "max_length": 128,
        },
        # Table 1 of the paper.
        "whisper-tiny": {},
        "whisper-base": {
            "model_dim": 512, "num_heads": 8, "encoder_layers": 6, "decoder_layers": 6, "ff_dim": 2048,
        },
        "whisper-small": {
            "model_dim": 768, "num_heads": 12, "encoder_layers": 12, "decoder_layers": 12, "ff_dim": 3072,
        },
    },
    default_preset="whisper-tiny",
    default_for={"sounds": "transcribe"},
    by_size=((100_000, "whisper-micro"), (math.inf, "whisper-tiny")),
)  # fmt: skip
