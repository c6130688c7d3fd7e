"""Changes of training pictures that leave their class as it is, drawn as a pure function of (seed, epoch, picture).

Pictures are (B, size, size, channels), 0 … 255. `augmented` shifts, flips, erases and applies random operations;
`mixing` draws with which other picture each one is blended (mixup, Zhang et al. 2018; cutmix, Yun et al. 2019).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps

from headwise.image.random_numbers import Floats, beta, uniforms
from headwise.image.reading import Pixels, as_pixels, from_pixels

MOST_OPERATIONS = 8
# The numbers that each picture draws, by their place.
_FLIP, _DOWN, _ACROSS, _ERASE, _ERASE_SIZE, _ERASE_DOWN, _ERASE_ACROSS, _OPERATIONS = range(8)
_DRAWN = _OPERATIONS + 3 * MOST_OPERATIONS  # an operation draws which, how much and in which direction
_MIX_DRAWN, _MIX_SEED = 6, 1  # numbers that mixing draws, and what tells them from those above


@dataclass(frozen=True)
class Augmentation:
    """What is done to training pictures; nothing by default."""

    flip: bool = False  # left and right are exchanged for half of the pictures
    shift: int = 0  # pixels, at most, in each direction; black comes in
    operations: int = 0  # of RANDOM_OPERATIONS for each picture (RandAugment, Cubuk et al. 2020)
    strength: float = 0.5  # of the operations, 0 … 1
    erase: float = 0.0  # share of pictures in which a rectangle is made grey (Zhong et al. 2020)
    mixup: float = 0.0  # alpha of Beta(alpha, alpha), the share of each of two blended pictures
    cutmix: float = 0.0  # alpha of Beta(alpha, alpha), the share of a picture that stays where another is pasted in

    @property
    def mixes(self) -> bool:
        return bool(self.mixup or self.cutmix)


def augmented(pictures: Pixels, rows: NDArray[np.integer], seed: int, epoch: int, how: Augmentation) -> Pixels:
    """Changes each picture by itself. `rows` are the numbers of the pictures, by which they draw."""
    drawn = uniforms(seed, epoch, rows, _DRAWN)
    if how.shift:
        pictures = shifted(pictures, drawn[:, [_DOWN, _ACROSS]], how.shift)
    if how.flip:
        flips = drawn[:, _FLIP] < 0.5
        pictures = np.where(flips[:, None, None, None], pictures[:, :, ::-1], pictures)
    if how.operations:
        pictures = np.stack([_operated(p, u, how) for p, u in zip(pictures, drawn[:, _OPERATIONS:], strict=True)])
    if how.erase:
        pictures = erased(pictures, drawn[:, _ERASE : _ERASE_ACROSS + 1], how.erase)
    return pictures


def shifted(pictures: Pixels, drawn: Floats, most: int) -> Pixels:
    """Moves each picture by -most … most pixels down and across; `drawn` is (B, 2)."""
    size = pictures.shape[1]
    padded = np.pad(pictures, ((0, 0), (most, most), (most, most), (0, 0)))
    first = (drawn * (2 * most + 1)).astype(np.int64)  # where the window begins in the padded picture
    inside = np.arange(size)
    down, across = first[:, :1] + inside, first[:, 1:] + inside  # (B, size)
    return np.asarray(padded[np.arange(len(pictures))[:, None, None], down[:, :, None], across[:, None, :]])


def erased(pictures: Pixels, drawn: Floats, share: float) -> Pixels:
    """Fills a rectangle of 5 … 30 % of some pictures with grey; `drawn` is (B, 4): whether, how large, down, across."""
    side = pictures.shape[1]
    edge = np.sqrt(0.05 + 0.25 * drawn[:, 1]) * side
    top, left = drawn[:, 2] * (side - edge), drawn[:, 3] * (side - edge)
    inside = _inside(side, top, top + edge, left, left + edge) & (drawn[:, 0] < share)[:, None, None]
    return np.where(inside[..., None], np.uint8(128), pictures)


@dataclass(frozen=True)
class Mixing:
    """With which picture each one is mixed, how much of it is left, and where the other is pasted in (cutmix)."""

    partners: NDArray[np.int64]
    shares: Floats  # of the first picture
    pasted: NDArray[np.bool_]  # (B,): pasted in, not blended
    inside: NDArray[np.bool_]  # (B, size, size): where the partner is

    def blend(self, pictures: Pixels, others: Pixels) -> NDArray[np.float32]:
        """Both as one, with fractions of 255."""
        share = self.shares.astype(np.float32)[:, None, None, None]
        blended = pictures * share + others * (1 - share)
        cut = np.where(self.inside[..., None], others, pictures)
        return np.where(self.pasted[:, None, None, None], cut, blended).astype(np.float32)


def mixing(rows: NDArray[np.integer], total: int, size: int, seed: int, epoch: int, how: Augmentation) -> Mixing:
    """Draws with which of `total` pictures each one is mixed, and how."""
    drawn = uniforms(seed + _MIX_SEED, epoch, rows, _MIX_DRAWN)
    partners = (drawn[:, 0] * total).astype(np.int64)
    pasted = drawn[:, 1] < (0.5 if how.mixup and how.cutmix else float(bool(how.cutmix)))
    shares = np.where(pasted, beta(drawn[:, 2], how.cutmix or 1.0), beta(drawn[:, 2], how.mixup or 1.0))
    edge = np.sqrt(1 - shares) * size
    top, left = drawn[:, 3] * size - edge / 2, drawn[:, 4] * size - edge / 2
    inside = _inside(size, top, top + edge, left, left + edge) & pasted[:, None, None]
    # A rectangle may reach beyond the picture: what counts is the part that it covers.
    covered = inside.mean(axis=(1, 2))
    return Mixing(partners, np.where(pasted, 1 - covered, shares), pasted, inside)


def _inside(size: int, top: Floats, bottom: Floats, left: Floats, right: Floats) -> NDArray[np.bool_]:
    """Which pixels are in each rectangle: (B, size, size)."""
    middle = np.arange(size) + 0.5
    down = (middle >= top[:, None]) & (middle < bottom[:, None])
    across = (middle >= left[:, None]) & (middle < right[:, None])
    return np.asarray(down[:, :, None] & across[:, None, :])


# ---- random operations on one picture


def _operated(pixels: Pixels, drawn: Floats, how: Augmentation) -> Pixels:
    image = from_pixels(np.ascontiguousarray(pixels))
    for number in range(how.operations):
        which, amount, sign = drawn[3 * number : 3 * number + 3]
        operation = RANDOM_OPERATIONS[int(which * len(RANDOM_OPERATIONS))]
        image = operation(image, float(amount) * how.strength * (1 if sign < 0.5 else -1))
    return as_pixels(image)


Operation = Callable[[Image.Image, float], Image.Image]  # the amount is -1 … 1


def _affine(image: Image.Image, a: float, b: float, c: float, d: float) -> Image.Image:
    """Turns, shears and scales around the middle; black comes in."""
    x, y = (image.width - 1) / 2, (image.height - 1) / 2
    matrix = (a, b, x - a * x - b * y, c, d, y - c * x - d * y)
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


def _turn(image: Image.Image, amount: float) -> Image.Image:
    return image.rotate(amount * 30, Image.Resampling.BILINEAR)


def _shear_across(image: Image.Image, amount: float) -> Image.Image:
    return _affine(image, 1, 0.3 * amount, 0, 1)


def _shear_down(image: Image.Image, amount: float) -> Image.Image:
    return _affine(image, 1, 0, 0.3 * amount, 1)


def _scale(image: Image.Image, amount: float) -> Image.Image:
    factor = 1 + 0.3 * amount
    return _affine(image, factor, 0, 0, factor)


def _contrast(image: Image.Image, amount: float) -> Image.Image:
    return ImageEnhance.Contrast(image).enhance(1 + 0.9 * amount)


def _brightness(image: Image.Image, amount: float) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(1 + 0.9 * amount)


def _sharpness(image: Image.Image, amount: float) -> Image.Image:
    return ImageEnhance.Sharpness(image).enhance(1 + 0.9 * amount)


def _even_out(image: Image.Image, amount: float) -> Image.Image:
    return ImageOps.autocontrast(image)


def _fewer_bits(image: Image.Image, amount: float) -> Image.Image:
    return ImageOps.posterize(image, 8 - round(4 * abs(amount)))


def _as_it_is(image: Image.Image, amount: float) -> Image.Image:
    return image


# Of RandAugment's set those that keep light and dark apart: nobody classifies the negative of a shoe.
RANDOM_OPERATIONS: tuple[Operation, ...] = (
    _as_it_is, _turn, _shear_across, _shear_down, _scale, _contrast, _brightness, _sharpness, _even_out, _fewer_bits,
)  # fmt: skip
