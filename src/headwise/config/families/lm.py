"""Language models: one causal stack, the architecture of GPT-2 (Radford et al. 2019)."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from headwise.config.family import Activation, Cutoffs, Family, Fraction, Positive, Settings


class LanguageModelSettings(Settings):
    """The defaults are a small model that trains on a CPU."""

    model_dim: Positive = Field(256, description="width of every layer")
    num_heads: Positive = Field(8, description="attention heads; must divide model_dim")
    layers: Positive = Field(4, description="number of layers")
    ff_dim: Positive = Field(512, description="inner width of the feed-forward network")
    dropout: Fraction = Field(0.1, description="on sub-layer outputs, and on embeddings + positions")
    attention_dropout: Fraction | None = Field(None, description="on attention weights; unset: same as dropout")
    activation_dropout: Fraction | None = Field(None, description="inside the feed-forward; unset: same as dropout")
    norm: Literal["post", "pre"] = Field("post", description="layer norm after the residual sum, or before")
    norm_epsilon: Fraction = Field(1e-5, description="added to the variance in layer norms")
    activation: Activation = Field("relu", description="of the feed-forward network")
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = Field("sinusoidal", description="position code")
    max_length: Positive = Field(1024, description="context: tokens that the model sees at once")
    tie: Literal["all", "target", "none"] = Field("all", description="whether the embedding is the output matrix too")
    cutoffs: Cutoffs = Field(
        (),
        description="ranks from each of which words have a quarter of the width (adaptive input and softmax); for word "
        "vocabularies of tens of thousands",
    )
    scale_embeddings: bool = Field(True, description="multiply embeddings by the square root of model_dim")
    absent: int = Field(
        0, ge=0, le=3, description="how many of padding, unknown and begin a published model has no vectors for"
    )

    @property
    def longest(self) -> int | None:
        return self.max_length

    @property
    def no_label_smoothing(self) -> str | None:
        return "cutoffs" if self.cutoffs else None


FAMILY = Family(
    name="lm",
    about="a causal stack: a language model",
    tasks=("generate",),
    network="headwise.models.lm:LanguageModel",
    settings=LanguageModelSettings,
    sizes=("vocab",),
    presets={
        "lm-small": {},
        # Radford et al. 2019, the smallest model; it adds embeddings to positions as they are.
        "gpt2": {
            "model_dim": 768, "num_heads": 12, "layers": 12, "ff_dim": 3072, "norm": "pre", "activation": "gelu-tanh",
            "positions": "learned", "scale_embeddings": False,
        },
    },
    default_preset="lm-small",
    default_for={"text": "generate"},
    by_size=((math.inf, "lm-small"),),
)  # fmt: skip
