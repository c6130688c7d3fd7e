"""How a picture becomes the numbers that a model reads: resized, cropped, grey or coloured, normalised.

A model directory keeps it as `preprocessing.json`, so that a picture is read in use as it was in training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, ValidationError, model_validator

from headwise.config.family import Section
from headwise.errors import ModelError
from headwise.image.reading import Pixels, as_pixels

LARGEST_SIDE = 4096
RESAMPLING = {
    "nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}  # fmt: skip
Side = Annotated[int, Field(ge=1, le=LARGEST_SIDE)]
Shares = Annotated[list[Annotated[float, Field(ge=-10, le=10)]], Field(min_length=1, max_length=3)]


class Preprocessing(Section):
    """The content of preprocessing.json."""

    kind: Literal["images"] = Field("images", description="what is read")
    size: Side = Field(description="height and width that the model gets, in pixels")
    channels: Literal[1, 3] = Field(3, description="1: grey; 3: red, green, blue")
    fit: Literal["crop", "stretch", "pad"] = Field(
        "crop", description="crop: the middle square; stretch: the whole picture, distorted; pad: the whole, on black"
    )
    resize: Side | None = Field(None, description="length of the shorter side before a crop; unset: size")
    resampling: Literal["nearest", "bilinear", "bicubic", "lanczos"] = Field("bilinear", description="of resizing")
    mean: Shares = Field([0.5], description="of each channel, subtracted; pixels are between 0 and 1")
    std: Shares = Field([0.5], description="of each channel, divided by")

    @model_validator(mode="after")
    def _fits(self) -> Preprocessing:
        if not len(self.mean) == len(self.std) == self.channels or min(self.std) <= 0:
            raise ValueError(f"mean and std must have {self.channels} numbers each, and std positive ones")
        if self.resize is not None and (self.fit != "crop" or self.resize < self.size):
            raise ValueError("resize is for fit = 'crop', and not smaller than size")
        return self

    @classmethod
    def of(cls, values: Mapping[str, Any], origin: str) -> Preprocessing:
        """Checks values that come from a model directory; `origin` is for messages."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ModelError(f"{origin} is damaged: {place or 'values'}: {first['msg']}") from None

    def fitted(self, image: Image.Image) -> Pixels:
        """The picture in the model's size and colours, (size, size, channels)."""
        wanted = "L" if self.channels == 1 else "RGB"
        image = image if image.mode == wanted else image.convert(wanted)
        square, how = (self.size, self.size), RESAMPLING[self.resampling]
        if image.size == square:
            return as_pixels(image)
        if self.fit == "pad":
            return as_pixels(_padded(image, self.size, how))
        box = None if self.fit == "stretch" else _middle(*image.size, self.size / (self.resize or self.size))
        return as_pixels(image.resize(square, how, box))

    def normalised(self, pixels: NDArray[np.generic]) -> NDArray[np.float32]:
        """Numbers 0 … 255, (B, size, size, channels) -> what the network reads, (B, channels, size, size)."""
        mean, std = (np.array(numbers, dtype=np.float64) for numbers in (self.mean, self.std))
        scale = (1 / (255 * std)).astype(np.float32)
        moved = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), dtype=np.float32)
        moved *= scale[:, None, None]
        moved -= (mean / std).astype(np.float32)[:, None, None]
        return moved


def _middle(width: int, height: int, share: float) -> tuple[float, float, float, float]:
    """The square in the middle whose side is this share of the shorter side: left, top, right, bottom."""
    side = min(width, height) * share
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def _padded(image: Image.Image, size: int, how: Image.Resampling) -> Image.Image:
    """The whole picture in the middle of a black square."""
    scale = size / max(image.size)
    width, height = (min(size, max(1, round(side * scale))) for side in image.size)
    square = Image.new(image.mode, (size, size))
    square.paste(image.resize((width, height), how), ((size - width) // 2, (size - height) // 2))
    return square
