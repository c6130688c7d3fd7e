"""Performer: attention in linear time by random features (Choromanski et al. 2021, arXiv 2009.14794)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headwise.config.family import Activation, Family, Fraction, Positive, Settings

MOST_FEATURES = 16_384  # to draw more takes minutes, and exact attention costs less


class PerformerSettings(Settings):
    """The defaults are a small model that trains on a CPU."""

    model_dim: Positive = Field(256, description="width of every layer")
    num_heads: Positive = Field(8, description="attention heads; must divide model_dim")
    layers: Positive = Field(4, description="number of layers")
    ff_dim: Positive = Field(512, description="inner width of the feed-forward network")
    features: Annotated[int, Field(ge=1, le=MOST_FEATURES)] = Field(
        128, description="random features of each head: more are closer to exact attention"
    )
    dropout: Fraction = Field(0.1, description="on sub-layer outputs, and on embeddings + positions")
    activation_dropout: Fraction | None = Field(None, description="inside the feed-forward; unset: same as dropout")
    norm: Literal["post", "pre"] = Field("pre", description="layer norm after the residual sum, or before")
    activation: Activation = Field("gelu", description="of the feed-forward network")
    positions: Literal["sinusoidal", "learned", "none"] = Field("sinusoidal", description="position code")
    max_length: Positive = Field(4096, description="tokens that the model reads at once")
    pooling: Literal["first", "mean"] = Field("mean", description="which state a text is classified by")
    tie: Literal["all", "target", "none"] = Field("all", description="whether the embedding is the output matrix too")

    @property
    def longest(self) -> int | None:
        return self.max_length


FAMILY = Family(
    name="performer",
    about="attention in linear time: a language model, or a classifier of long texts",
    tasks=("generate", "classify"),
    network="headwise.models.performer:Performer",
    settings=PerformerSettings,
    sizes=("vocab", "classes"),
    presets={
        "performer-tiny": {"model_dim": 128, "num_heads": 4, "layers": 2, "ff_dim": 256, "max_length": 16384},
        "performer-small": {},
    },
    default_preset="performer-small",
)
