"""BERT: the encoder alone, which reads a text from both sides at once (Devlin et al. 2019, arXiv 1810.04805)."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from headwise.config.family import Activation, Family, Fraction, Positive, Settings


class BertSettings(Settings):
    """The defaults are BERT base, but for the pooling, of which the mean is the easier to train."""

    model_dim: Positive = Field(768, description="width of every layer")
    num_heads: Positive = Field(12, description="attention heads; must divide model_dim")
    layers: Positive = Field(12, description="number of layers")
    ff_dim: Positive = Field(3072, description="inner width of the feed-forward network")
    dropout: Fraction = Field(0.1, description="on embeddings, sub-layer outputs and the state that labels come from")
    attention_dropout: Fraction | None = Field(None, description="on attention weights; unset: same as dropout")
    activation_dropout: Fraction = Field(0.0, description="inside the feed-forward network")
    norm: Literal["post", "pre"] = Field("post", description="layer norm after the residual sum, or before")
    norm_epsilon: Annotated[float, Field(gt=0, lt=1)] = Field(1e-12, description="added to the variance by layer norms")
    activation: Activation = Field("gelu", description="of the feed-forward network and of the head for masked tokens")
    max_length: Positive = Field(512, description="longest input, in tokens; special tokens count")
    segments: Positive = Field(2, description="texts that one input may hold, each with a vector that says which it is")
    pooling: Literal["first", "mean"] = Field(
        "mean",
        description="what stands for a whole text: the state of its first token (the original), or the mean of all",
    )
    pooler: bool = Field(True, description="a linear map and tanh between the pooled state and the labels")
    absent: int = Field(
        0, ge=0, le=3, description="how many of padding, unknown and begin a published model has no vectors for"
    )

    @property
    def longest(self) -> int | None:
        return self.max_length

    @property
    def weights_dropout(self) -> float:
        """Dropout on attention weights."""
        return self.dropout if self.attention_dropout is None else self.attention_dropout


FAMILY = Family(
    name="bert",
    about="an encoder: fills gaps, classifies, embeds",
    tasks=("fill", "classify", "embed"),
    network="headwise.models.bert:Bert",
    settings=BertSettings,
    sizes=("vocab", "classes"),
    # Turc et al. 2019 (arXiv 1908.08962), and the original.
    presets={
        "bert-tiny": {"model_dim": 128, "num_heads": 2, "layers": 2, "ff_dim": 512},
        "bert-mini": {"model_dim": 256, "num_heads": 4, "layers": 4, "ff_dim": 1024},
        "bert-small": {"model_dim": 512, "num_heads": 8, "layers": 4, "ff_dim": 2048},
        "bert-base": {},
    },
    default_preset="bert-mini",
    default_for={"table": "classify"},
    by_size=((50_000, "bert-tiny"), (math.inf, "bert-mini")),
)
