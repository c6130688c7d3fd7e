"""Reads a picture as 8-bit grey or RGB, upright and opaque, or says in one line what is wrong with it.

What is done with each kind of unusual file is in the table of docs/images.md; `BadPicture.reason` is what the report of
`headwise check` counts.
"""

from __future__ import annotations

import warnings
from io import BytesIO
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from headwise.errors import DataError
from headwise.files import check_name, read_bounded

Pixels = NDArray[np.uint8]  # (height, width, channels): 1 channel of grey, or 3 of red, green and blue

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
# Formats by their content. Others that Pillow knows run programs (EPS) or are never photographs.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
# Of a file that a stranger sends: those whose frames can be counted without reading all of it.
UPLOADED = ("PNG", "JPEG", "WEBP", "BMP")
MOST_PIXELS = 89_478_485  # Pillow's own bound: 256 MB as RGB; a small file may claim to be any size
MOST_BYTES = 256 << 20
_TILE = 1024  # pixels, of the side
_DEEP = ("I;16", "I;16L", "I;16B", "I;16N")
_WITH_ALPHA = ("LA", "La", "PA", "RGBA", "RGBa")
_CONVERTED = ("P", "CMYK", "YCbCr")

# The size is checked here, and what is too large is refused.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


class BadPicture(DataError):
    """A picture that is not read. `reason` is one word of those that the report counts."""

    def __init__(self, reason: str, problem: str, file: str | Path) -> None:
        super().__init__(problem, file=file)
        self.reason = reason


def read_picture(file: str | Path) -> Image.Image:
    """Reads a file as a picture of mode L or RGB."""
    check_name(file)
    try:
        content = read_bounded(file, MOST_BYTES)
    except FileNotFoundError:
        raise BadPicture("missing", "there is no such file; check its name", file) from None
    except OSError as error:
        raise BadPicture("unreadable", f"cannot be read ({error.strerror or error})", file) from error
    return decode_picture(content, file)


def decode_picture(
    content: bytes, name: str | Path, *, most_pixels: int = MOST_PIXELS, formats: tuple[str, ...] = FORMATS
) -> Image.Image:
    """Decodes the bytes of a file; `name` is for messages. What the file's name says of its type does not matter."""
    if not content:
        raise BadPicture("empty", "is empty; take another copy of it", name)
    try:
        image = Image.open(BytesIO(content), formats=formats)
    except Image.DecompressionBombError:
        raise _too_large(name, most_pixels) from None
    except UnidentifiedImageError as error:
        known = ", ".join(formats)
        raise BadPicture(
            "not-a-picture", f"is not a picture that is read, whatever its name says; give one of {known}", name
        ) from error
    except Exception as error:  # decoders raise whatever their format suggests
        problem = f"is cut off or damaged, or a part of it is too large ({_first_line(error)}); save it again"
        raise BadPicture("damaged", problem, name) from error
    with image:
        if image.width * image.height > most_pixels:
            raise _too_large(name, most_pixels, image)
        _refuse_several(image, name)
        try:
            image.load()
            ImageOps.exif_transpose(image, in_place=True)  # otherwise it copies what stands upright already
        except Exception as error:
            problem = f"is cut off or damaged ({_first_line(error)}); take another copy of it"
            raise BadPicture("damaged", problem, name) from error
        return _plain(image, name)


def as_pixels(image: Image.Image) -> Pixels:
    """(height, width, 1 or 3)."""
    pixels = np.asarray(image, dtype=np.uint8)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def from_pixels(pixels: Pixels) -> Image.Image:
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def _refuse_several(image: Image.Image, name: str | Path) -> None:
    """A label of an animation says nothing of its single frames. (A camera's MPO is a photo with its preview.)"""
    frames = 1 if image.format == "MPO" else int(getattr(image, "n_frames", 1))
    if frames > 1:
        raise BadPicture("animated", f"has {frames} frames or pages; save the one that is meant as a file", name)


def _plain(image: Image.Image, name: str | Path) -> Image.Image:
    """The picture as L or RGB: transparency on white, 16 bits as 8, printing colours as those of a screen."""
    mode = image.mode
    if mode in _WITH_ALPHA or "transparency" in image.info:
        return _on_white(image, "L" if mode in ("L", "LA", "La", "1") else "RGB")
    if mode in ("L", "RGB"):
        return image
    if mode == "1":
        return image.convert("L")
    if mode in _DEEP or mode == "I":
        return _eight_bits(image, name)
    if mode in _CONVERTED:
        return image.convert("RGB")
    raise BadPicture("mode", f"has pixels of the kind {mode}, whose range is unknown; save it as 8-bit PNG", name)


def _on_white(image: Image.Image, mode: str) -> Image.Image:
    """Tile by tile: whole copies of a large picture would take several times its memory."""
    flat = Image.new(mode, image.size)
    for left, top in product(range(0, image.width, _TILE), range(0, image.height, _TILE)):
        box = (left, top, min(left + _TILE, image.width), min(top + _TILE, image.height))
        tile = image.crop(box).convert("RGBA")
        flat.paste(Image.alpha_composite(Image.new("RGBA", tile.size, "white"), tile).convert(mode), box)
    return flat


def _eight_bits(image: Image.Image, name: str | Path) -> Image.Image:
    """The upper half of 16 bits. Whole numbers of 32 bits are read where they are of 16."""
    values = np.asarray(image)
    if values.size and (values.min() < 0 or values.max() > 0xFFFF):
        raise BadPicture("mode", "has values that do not fit into 16 bits; save it as 8-bit PNG", name)
    return Image.fromarray((values >> 8).astype(np.uint8))


def _too_large(name: str | Path, most: int, image: Image.Image | None = None) -> BadPicture:
    size = "more pixels than" if image is None else f"{image.width:,} × {image.height:,} pixels, more than"
    return BadPicture("huge", f"has {size} the {most:,} that are read; make it smaller", name)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
