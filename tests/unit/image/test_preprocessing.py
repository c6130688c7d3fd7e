from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from headwise.errors import ModelError
from headwise.image.preprocessing import Preprocessing

PICTURE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 50, 3), dtype=np.uint8))


def how(**values: Any) -> Preprocessing:
    return Preprocessing.of({"size": 8, "mean": [0.5] * 3, "std": [0.25] * 3, **values}, "preprocessing.json")


def test_a_crop_is_the_middle_square() -> None:
    middle = PICTURE.resize((8, 8), Image.Resampling.BILINEAR, (10, 0, 40, 30))
    assert np.array_equal(how().fitted(PICTURE), np.asarray(middle))


def test_a_crop_after_resizing_is_smaller() -> None:
    smaller = PICTURE.resize((8, 8), Image.Resampling.BICUBIC, (10 + 5, 5, 40 - 5, 25))
    assert np.array_equal(how(resize=12, resampling="bicubic").fitted(PICTURE), np.asarray(smaller))


def test_stretching_keeps_everything() -> None:
    stretched = PICTURE.resize((8, 8), Image.Resampling.BILINEAR)
    assert np.array_equal(how(fit="stretch").fitted(PICTURE), np.asarray(stretched))


def test_padding_keeps_the_shape_on_black() -> None:
    found = how(fit="pad").fitted(PICTURE)
    whole = np.asarray(PICTURE.resize((8, 5), Image.Resampling.BILINEAR))
    assert np.array_equal(found[1:6], whole)
    assert not found[0].any()
    assert not found[6:].any()


@pytest.mark.parametrize("fit", ["crop", "stretch", "pad"])
@pytest.mark.parametrize("size", [(1, 20_000), (20_000, 1), (1, 1), (8, 8)])
def test_any_shape_is_fitted_without_a_giant_in_between(fit: str, size: tuple[int, int]) -> None:
    assert how(fit=fit).fitted(Image.new("RGB", size, "red")).shape == (8, 8, 3)


def test_colours_become_grey_and_grey_becomes_colours() -> None:
    grey = how(channels=1, mean=[0.5], std=[0.5]).fitted(PICTURE)
    assert grey.shape == (8, 8, 1)
    coloured = how().fitted(Image.fromarray(grey[:, :, 0]))
    assert np.array_equal(coloured, grey.repeat(3, axis=2))


def test_a_picture_of_the_right_size_is_not_touched() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    assert np.array_equal(how().fitted(Image.fromarray(pixels)), pixels)


def test_pixels_are_normalised_by_channel() -> None:
    settings = how(mean=[0.1, 0.2, 0.3], std=[0.5, 0.25, 1.0])
    pixels = np.random.default_rng(1).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    expected = (pixels / 255 - [0.1, 0.2, 0.3]) / [0.5, 0.25, 1.0]
    found = settings.normalised(pixels)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected.transpose(0, 3, 1, 2), atol=1e-6)


def test_it_is_the_same_after_it_was_saved() -> None:
    settings = how(resize=10, fit="crop")
    assert Preprocessing.of(settings.model_dump(mode="json"), "file") == settings


@pytest.mark.parametrize(
    "values",
    [
        {"size": 0}, {"size": 10**9}, {"size": "8"}, {"channels": 2}, {"mean": [0.5]}, {"std": [0.0, 1.0, 1.0]},
        {"fit": "zoom"}, {"resize": 4}, {"resize": 12, "fit": "pad"}, {"mean": [float("nan")] * 3}, {"more": 1},
        {"kind": "sounds"},
    ],
)  # fmt: skip
def test_what_a_damaged_directory_says_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"preprocessing.json is damaged"):
        how(**values)
