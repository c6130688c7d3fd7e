"""Vision Transformers: a picture is worth 16 × 16 words (Dosovitskiy et al. 2021)."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from headwise.config.family import Activation, Family, Fraction, Positive, Settings

LARGEST_SIDE = 4096  # pixels
MOST_PATCHES = 16_384  # of a picture; beyond that attention over the patches is out of reach


class ViTSettings(Settings):
    """The defaults are ViT-B/16 of the paper."""

    image_size: Annotated[int, Field(ge=1, le=LARGEST_SIDE)] = Field(
        224, description="height and width of the pictures, in pixels; positions are interpolated for other sizes"
    )
    patch_size: Positive = Field(16, description="side of the square that becomes one token, in pixels")
    stem: Literal["patches", "convolutions"] = Field(
        "patches",
        description="patches: one linear map per square; convolutions: layers that halve the picture until a token "
        "stands for patch_size pixels, which small data need",
    )
    model_dim: Positive = Field(768, description="width of every layer")
    num_heads: Positive = Field(12, description="attention heads; must divide model_dim")
    layers: Positive = Field(12, description="number of layers")
    ff_dim: Positive = Field(3072, description="inner width of the feed-forward network")
    dropout: Fraction = Field(0.0, description="on sub-layer outputs, and on embeddings + positions")
    attention_dropout: Fraction | None = Field(None, description="on attention weights; unset: same as dropout")
    activation_dropout: Fraction | None = Field(None, description="inside the feed-forward; unset: same as dropout")
    activation: Activation = Field("gelu", description="of the feed-forward network")
    positions: Literal["learned", "sinusoidal"] = Field(
        "learned", description="trained vectors per place, or fixed sinusoids of row and column"
    )
    pooling: Literal["cls", "mean"] = Field(
        "cls",
        description="what is classified: the state of a token [CLS] before the patches, or the mean of all patches",
    )
    norm_epsilon: Annotated[float, Field(gt=0, le=1e-3)] = Field(
        1e-6, description="added to the variance in layer norms"
    )


FAMILY = Family(
    name="vit",
    about="an encoder of picture patches: classifies pictures",
    tasks=("classify",),
    network="headwise.models.vit:ViT",
    settings=ViTSettings,
    sizes=("channels", "classes"),
    presets={
        # For 28 to 32 pixels and tens of thousands of pictures: a compact convolutional transformer (CCT).
        "vit-tiny": {
            "image_size": 28, "patch_size": 4, "stem": "convolutions", "model_dim": 128, "num_heads": 4, "layers": 4,
            "ff_dim": 256, "pooling": "mean", "dropout": 0.1,
        },
        # Touvron et al. 2021 (DeiT), and Table 1 of Dosovitskiy et al. 2021.
        "vit-s16": {"model_dim": 384, "num_heads": 6, "ff_dim": 1536},
        "vit-b16": {},
    },
    default_preset="vit-tiny",
    default_for={"images": "classify"},
    by_size=((200_000, "vit-tiny"), (math.inf, "vit-s16")),
)  # fmt: skip
