"""The Transformer of 'Attention Is All You Need': an encoder and a decoder (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from headwise.config.family import Activation, Family, Fraction, Positive, Settings


class TransformerSettings(Settings):
    """The defaults are the paper's base model: Table 3, first row."""

    model_dim: Positive = Field(512, description="width of every layer")
    num_heads: Positive = Field(8, description="attention heads; must divide model_dim")
    encoder_layers: Positive = Field(6, description="layers of the encoder")
    decoder_layers: Positive = Field(6, description="layers of the decoder")
    ff_dim: Positive = Field(2048, description="inner width of the feed-forward network")
    dropout: Fraction = Field(0.1, description="on sub-layer outputs, and on embeddings + positions")
    attention_dropout: Fraction | None = Field(None, description="on attention weights; unset: same as dropout")
    activation_dropout: Fraction | None = Field(None, description="inside the feed-forward; unset: same as dropout")
    norm: Literal["post", "pre"] = Field("post", description="layer norm after the residual sum, or before")
    norm_epsilon: Fraction = Field(1e-5, description="added to the variance in layer norms")
    activation: Activation = Field("relu", description="of the feed-forward network")
    positions: Literal["sinusoidal", "learned", "none"] = Field("sinusoidal", description="position code")
    max_length: Positive = Field(1024, description="longest sequence, in tokens, where positions are learned")
    tie: Literal["all", "target", "none"] = Field("all", description="which embeddings share the output matrix")
    final_norm: bool | None = Field(None, description="layer norm after each stack; unset: only with norm = 'pre'")
    source_end: bool = Field(
        True, description="whether the source's end of sentence is attended to; models of OpenNMT do not have it"
    )
    output_bias: bool = Field(False, description="a trained number per target token, added to its logit")
    absent: int = Field(
        0, ge=0, le=3, description="how many of padding, unknown and begin a published model has no vectors for"
    )

    @property
    def longest(self) -> int | None:
        return self.max_length if self.positions == "learned" else None


FAMILY = Family(
    name="transformer",
    about="encoder and decoder: translates",
    tasks=("translate",),
    network="headwise.models.transformer:Transformer",
    settings=TransformerSettings,
    sizes=("source_vocab", "target_vocab"),
    presets={
        "tiny": {"model_dim": 128, "num_heads": 4, "encoder_layers": 4, "decoder_layers": 4, "ff_dim": 256},
        "small": {"model_dim": 256, "num_heads": 4, "encoder_layers": 3, "decoder_layers": 3, "ff_dim": 1024},
        # Table 3 of the paper, rows base and big.
        "base": {},
        "big": {"model_dim": 1024, "num_heads": 16, "ff_dim": 4096, "dropout": 0.3},
    },
    default_preset="base",
    default_for={"source": "translate"},
    by_size=((100_000, "tiny"), (2_000_000, "small"), (math.inf, "base")),
)
