"""The Vision Transformer (Dosovitskiy et al. 2021, arXiv 2010.11929), also with a convolutional stem (CCT)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headwise.config.families.vit import MOST_PATCHES, ViTSettings
from headwise.errors import ShapeError
from headwise.models.interface import Network
from headwise.nn import Dropout, Embedding, Encoder, LayerMakers
from headwise.nn.patches import ConvolutionalStem, LearnedGrid, PatchEmbedding, SinusoidalGrid


class ViT(Network):
    """Classifies pictures: vit(pixels) gives the logits of the classes. With classes = 0 it has states only.

    Keyword arguments are those of ViTSettings: image_size, patch_size, stem, model_dim, num_heads, layers, ff_dim, …
    Pictures of another size than image_size are fine as well: positions are interpolated.
    """

    def __init__(self, *, classes: int, channels: int = 3, **settings: Any) -> None:
        super().__init__()
        self.settings = sizes = ViTSettings.of(settings)
        self.architecture = {"channels": channels, "classes": classes, **sizes.model_dump(mode="json")}
        if classes < 0 or channels < 1:
            raise ShapeError(f"a ViT needs at least one channel and no less than 0 classes, not {channels}, {classes}")
        if sizes.image_size < sizes.patch_size:
            raise ShapeError(f"patch_size ({sizes.patch_size}) is larger than image_size ({sizes.image_size})")
        make = LayerMakers.standard(
            sizes.model_dim, sizes.num_heads, sizes.ff_dim, sizes.dropout, attention_dropout=sizes.attention_dropout,
            activation_dropout=sizes.activation_dropout, norm="pre", activation=sizes.activation,
        )  # fmt: skip
        make = replace(make, norm=partial(nn.LayerNorm, sizes.model_dim, eps=sizes.norm_epsilon))
        stem = PatchEmbedding if sizes.stem == "patches" else ConvolutionalStem
        self.stem = stem(channels, sizes.patch_size, sizes.model_dim)
        leading = int(sizes.pooling == "cls")
        self.class_token = nn.Parameter(torch.randn(sizes.model_dim) * 0.02) if leading else None
        grid = self.stem.grid(sizes.image_size, sizes.image_size)
        _check_patches(grid)
        self.max_length = leading + grid[0] * grid[1]  # of a picture of image_size; others may have more
        self.positions = (
            LearnedGrid(sizes.model_dim, grid, leading)
            if sizes.positions == "learned"
            else SinusoidalGrid(sizes.model_dim, leading)
        )
        self.dropout = Dropout(sizes.dropout)
        self.encoder = Encoder(make, sizes.layers)
        if classes:
            self.output = Embedding(classes, sizes.model_dim, scaled=False, bias=True)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, C, height, width), normalised -> logits (B, classes)."""
        if not self.architecture["classes"]:
            raise ShapeError("this ViT has no classes: it gives states, and is fine-tuned to get an output layer")
        return self.output.logits(self.states(pixels))

    def states(self, pixels: Tensor) -> Tensor:
        """What is classified: (B, C, height, width) -> (B, D)."""
        if self.settings.pooling == "mean":
            return self.hidden(pixels).mean(dim=1)
        first: Tensor = self.encoder(self.embed(pixels), rows=1)  # of the last layer nothing but [CLS] is needed
        return first[:, 0]

    def hidden(self, pixels: Tensor) -> Tensor:
        """States of [CLS], if there is one, and of all patches: (B, C, height, width) -> (B, 1 + R·G, D)."""
        out: Tensor = self.encoder(self.embed(pixels))
        return out

    def embed(self, pixels: Tensor) -> Tensor:  # (B, C, height, width) -> (B, 1 + R·G, D)
        self._check(pixels)
        grid = self.grid(pixels)
        x = self.stem(pixels)
        if self.class_token is not None:
            x = torch.cat((self.class_token.expand(x.size(0), 1, -1), x), dim=1)
        embedded: Tensor = self.dropout(self.positions(x, grid))
        return embedded

    def grid(self, pixels: Tensor) -> tuple[int, int]:
        """Returns the rows and columns of patches of such pictures."""
        return self.stem.grid(pixels.size(-2), pixels.size(-1))

    def _check(self, pixels: Tensor) -> None:
        channels = self.architecture["channels"]
        if pixels.dim() != 4 or pixels.size(1) != channels:
            raise ShapeError(f"pixels must be (batch, {channels}, height, width), not shape {tuple(pixels.shape)}")
        if not pixels.is_floating_point():
            raise ShapeError(f"pixels must be normalised floating-point numbers, not {pixels.dtype}")
        _check_patches(self.grid(pixels))
        if 0 in self.grid(pixels):
            size = f"{pixels.size(2)} × {pixels.size(3)}"
            raise ShapeError(
                f"a picture of {size} pixels is smaller than one patch ({self.settings.patch_size} pixels)"
            )

    # ---- for training and for looking inside

    def shard_units(self) -> Iterator[nn.Module | list[nn.Module]]:
        yield from self.encoder.layers

    def attention_names(self) -> dict[str, list[str]]:
        return {"encoder": [f"encoder.layers.{number}.self_attention" for number in range(len(self.encoder.layers))]}

    def entrance(self) -> nn.Module:
        return self.positions

    def probe(self) -> tuple[Tensor, ...]:
        """Four pictures of waves."""
        shape = (4, self.architecture["channels"], self.settings.image_size, self.settings.image_size)
        return (torch.arange(math.prod(shape)).mul(0.37).sin().view(shape),)


def _check_patches(grid: tuple[int, int]) -> None:
    if grid[0] * grid[1] > MOST_PATCHES:
        raise ShapeError(f"a picture of {grid[0]} × {grid[1]} patches is too large; at most {MOST_PATCHES:,} are read")
