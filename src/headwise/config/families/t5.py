"""T5: an encoder and a decoder with relative positions, for any task from text to text (Raffel et al. 2020)."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from headwise.config.family import LARGEST, Activation, Family, Fraction, Positive, Settings


class T5Settings(Settings):
    """The defaults are the paper's small model, version 1.0."""

    model_dim: Positive = Field(512, description="width of every layer")
    num_heads: Positive = Field(8, description="attention heads")
    head_dim: Positive = Field(64, description="width of a head; all heads together need not have the model's width")
    encoder_layers: Positive = Field(6, description="layers of the encoder")
    decoder_layers: Positive = Field(6, description="layers of the decoder")
    ff_dim: Positive = Field(2048, description="inner width of the feed-forward network")
    activation: Activation = Field("relu", description="of the feed-forward network")
    gated: bool = Field(False, description="multiply the activation by a second projection (version 1.1)")
    tie: Literal["all", "none"] = Field(
        "all",
        description="all: the embedding is the output matrix too, and states are divided by the square root of "
        "model_dim before it (version 1.0); none: an output matrix of its own, states as they are (version 1.1)",
    )
    buckets: Annotated[int, Field(ge=4, le=LARGEST)] = Field(
        32, description="buckets of relative positions, in each stack"
    )
    max_distance: Positive = Field(128, description="distance from which all relative positions share a bucket")
    dropout: Fraction = Field(0.1, description="on embeddings, sub-layer outputs and the output of each stack")
    attention_dropout: Fraction | None = Field(None, description="on attention weights; unset: same as dropout")
    activation_dropout: Fraction | None = Field(None, description="inside the feed-forward; unset: same as dropout")
    absent: int = Field(
        0, ge=0, le=3, description="how many of padding, unknown and begin a published model has no vectors for"
    )

    @property
    def fills(self) -> str:
        return "spans"


FAMILY = Family(
    name="t5",
    about="encoder and decoder with relative positions: text to text",
    tasks=("translate", "fill"),
    network="headwise.models.t5:T5",
    settings=T5Settings,
    sizes=("vocab",),
    presets={
        # The shape of the Transformer's `tiny`.
        "t5-tiny": {
            "model_dim": 128, "num_heads": 4, "head_dim": 32, "encoder_layers": 4, "decoder_layers": 4, "ff_dim": 256,
        },
        # Table 1 of the paper's appendix and the models that its authors published.
        "t5-small": {},
        "t5-base": {
            "model_dim": 768, "num_heads": 12, "encoder_layers": 12, "decoder_layers": 12, "ff_dim": 3072,
        },
        "t5-v1.1-small": {
            "num_heads": 6, "encoder_layers": 8, "decoder_layers": 8, "ff_dim": 1024, "activation": "gelu-tanh",
            "gated": True, "tie": "none",
        },
    },
    default_preset="t5-small",
    # Its embeddings have variance 1, which rates of Adam that suit the other weights hardly move.
    optimizer=("adafactor", 0.02),
    by_size=((200_000, "t5-tiny"), (math.inf, "t5-small")),
)  # fmt: skip
