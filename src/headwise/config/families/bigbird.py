"""BigBird: BERT with attention between blocks, for long texts (Zaheer et al. 2020, arXiv 2007.14062)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headwise.config.families.bert import BertSettings
from headwise.config.family import Activation, Family, Fraction, Natural, Positive

LARGEST_BLOCK = 1024  # tokens: short texts are padded to a block
MOST_RANDOM = 1024  # blocks: all of them are copied for each block, and exact attention costs less


class BigBirdSettings(BertSettings):
    """The defaults are BigBird base."""

    attention_dropout: Fraction | None = Field(
        None,
        description="on attention weights of texts that see all of themselves (up to 5 + random blocks), not of longer "
        "ones; unset: same as dropout",
    )
    max_length: Positive = Field(4096, description="longest input, in tokens; special tokens count")
    activation: Activation = Field(
        "gelu-tanh", description="of the feed-forward network and of the head for masked tokens"
    )
    pooler_activation: Activation | Literal["tanh"] = Field(
        "tanh", description="between the pooled state and the labels; published models have that of the layers"
    )
    block: Annotated[int, Field(ge=1, le=LARGEST_BLOCK)] = Field(64, description="tokens of a block")
    random: Annotated[int, Field(ge=0, le=MOST_RANDOM)] = Field(3, description="random blocks that each block sees")
    seed: Natural = Field(0, description="of the random blocks; each layer draws its own")
    draw: bool = Field(
        True,
        description="draw the random blocks; false: all of them are the first block, as in the library transformers in "
        "evaluation",
    )


FAMILY = Family(
    name="bigbird",
    about="an encoder for long texts with sparse blocks: fills gaps, classifies, embeds",
    tasks=("fill", "classify", "embed"),
    network="headwise.models.bigbird:BigBird",
    settings=BigBirdSettings,
    sizes=("vocab", "classes"),
    presets={
        "bigbird-tiny": {
            "model_dim": 128, "num_heads": 4, "layers": 2, "ff_dim": 256, "block": 32, "attention_dropout": 0.0,
            "max_length": 16384,
        },
        "bigbird-base": {},
    },
    default_preset="bigbird-tiny",
)  # fmt: skip
