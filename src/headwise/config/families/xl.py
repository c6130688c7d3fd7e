"""Transformer-XL: a language model that remembers earlier segments of its text (Dai et al. 2019, arXiv 1901.02860)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from headwise.config.family import Activation, Cutoffs, Family, Fraction, Positive, Settings

LONGEST_MEMORY = 65_536  # tokens: every layer keeps its inputs there, for every row of a batch


class TransformerXLSettings(Settings):
    """The defaults are a small model that trains on a CPU."""

    streams: ClassVar[bool] = True

    model_dim: Positive = Field(256, description="width of every layer")
    num_heads: Positive = Field(8, description="attention heads")
    head_dim: Positive | None = Field(None, description="size of a head; unset: model_dim / num_heads")
    layers: Positive = Field(4, description="number of layers")
    ff_dim: Positive = Field(512, description="inner width of the feed-forward network")
    dropout: Fraction = Field(0.1, description="on embeddings, distances, sub-layer outputs and the last states")
    attention_dropout: Fraction | None = Field(None, description="on attention weights; unset: same as dropout")
    activation_dropout: Fraction | None = Field(None, description="inside the feed-forward; unset: same as dropout")
    norm: Literal["post", "pre"] = Field("post", description="layer norm after the residual sum, or before")
    activation: Activation = Field("relu", description="of the feed-forward network")
    segment: Positive = Field(128, description="tokens that are read at once")
    memory: Annotated[int, Field(ge=0, le=LONGEST_MEMORY)] = Field(
        128, description="tokens before them whose states are remembered"
    )
    clamp: Positive | None = Field(None, description="distances beyond this count as this; unset: none do")
    share_biases: bool = Field(True, description="one pair of biases u and v for all layers, or one for each")
    tie: Literal["all", "target", "none"] = Field("all", description="whether the embedding is the output matrix too")
    cutoffs: Cutoffs = Field(
        (),
        description="ranks from each of which words have a quarter of the width (adaptive input and softmax); for word "
        "vocabularies of tens of thousands",
    )

    @property
    def no_label_smoothing(self) -> str | None:
        return "cutoffs" if self.cutoffs else None


FAMILY = Family(
    name="xl",
    about="a language model with a memory of earlier segments (Transformer-XL)",
    tasks=("generate",),
    network="headwise.models.xl:TransformerXL",
    settings=TransformerXLSettings,
    sizes=("vocab",),
    presets={
        "xl-small": {},
        # The paper's model for WikiText-103, standard size.
        "xl-base": {
            "model_dim": 410, "num_heads": 10, "head_dim": 41, "layers": 16, "ff_dim": 2100, "attention_dropout": 0.0,
            "segment": 150, "memory": 150,
        },
    },
    default_preset="xl-small",
)  # fmt: skip
