"""Longformer: BERT with a sliding window and global tokens, for long texts (Beltagy et al. 2020, arXiv 2004.05150)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headwise.config.families.bert import BertSettings
from headwise.config.family import Family, Positive

WIDEST = 4096  # tokens of a window: short texts are padded to half of it, and each of these meets twice the others


class LongformerSettings(BertSettings):
    """The defaults are Longformer base."""

    max_length: Positive = Field(4096, description="longest input, in tokens; special tokens count")
    segments: Positive = Field(1, description="texts that one input may hold, each with a vector that says which it is")
    window: Annotated[int, Field(ge=2, le=WIDEST, multiple_of=2)] = Field(
        512, description="tokens that each token sees besides itself: half of them on either side"
    )
    global_first: bool = Field(True, description="the first token sees the whole text, and all tokens see it")


FAMILY = Family(
    name="longformer",
    about="an encoder for long texts with a sliding window: fills gaps, classifies, embeds",
    tasks=("fill", "classify", "embed"),
    network="headwise.models.longformer:Longformer",
    settings=LongformerSettings,
    sizes=("vocab", "classes"),
    presets={
        "longformer-tiny": {
            "model_dim": 128, "num_heads": 4, "layers": 2, "ff_dim": 256, "window": 128, "attention_dropout": 0.0,
            "max_length": 16384,
        },
        "longformer-base": {},
    },
    default_preset="longformer-tiny",
)  # fmt: skip
