from __future__ import annotations

import numpy as np
import pytest

from headwise.image.augmentation import RANDOM_OPERATIONS, Augmentation, augmented, erased, mixing, shifted
from headwise.image.reading import as_pixels, from_pixels

PICTURES = np.random.default_rng(0).integers(1, 256, (40, 12, 12, 3), dtype=np.uint8)
ROWS = np.arange(40) * 7
EVERYTHING = Augmentation(flip=True, shift=2, operations=2, strength=0.8, erase=0.5)


def test_nothing_is_done_by_default() -> None:
    assert augmented(PICTURES, ROWS, 1, 1, Augmentation()) is PICTURES
    assert not Augmentation().mixes


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_is_changed_alike_whatever_batch_it_is_in(channels: int) -> None:
    pictures = PICTURES[..., :channels]
    whole = augmented(pictures, ROWS, 3, 5, EVERYTHING)
    assert whole.shape == pictures.shape
    assert whole.dtype == np.uint8
    few = np.array([30, 2])
    assert np.array_equal(augmented(pictures[few], ROWS[few], 3, 5, EVERYTHING), whole[few])
    for seed, epoch in ((3, 6), (4, 5)):
        assert not np.array_equal(augmented(pictures, ROWS, seed, epoch, EVERYTHING), whole)


def test_the_original_stays_as_it_was() -> None:
    before = PICTURES.copy()
    augmented(PICTURES, ROWS, 3, 5, EVERYTHING)
    assert np.array_equal(PICTURES, before)


def test_about_half_are_flipped_and_each_is_flipped_wholly() -> None:
    found = augmented(PICTURES, ROWS, 1, 1, Augmentation(flip=True))
    flipped = [np.array_equal(one, other[:, ::-1]) for one, other in zip(found, PICTURES, strict=True)]
    same = [np.array_equal(one, other) for one, other in zip(found, PICTURES, strict=True)]
    assert all(one != other for one, other in zip(flipped, same, strict=True))
    assert 10 < sum(flipped) < 30


def test_shifts_reach_every_place_and_bring_black_in() -> None:
    drawn = np.array([[0.0, 0.0], [0.5, 0.5], [0.99, 0.99]])
    found = shifted(PICTURES[:3], drawn, 2)
    assert np.array_equal(found[0, 2:, 2:], PICTURES[0, :-2, :-2])
    assert not found[0, :2].any()
    assert np.array_equal(found[1], PICTURES[1])
    assert np.array_equal(found[2, :-2, :-2], PICTURES[2, 2:, 2:])
    assert not found[2, -2:].any()


def test_a_rectangle_of_the_size_drawn_is_erased() -> None:
    pictures = np.zeros((3, 20, 20, 1), dtype=np.uint8)
    drawn = np.array([[0.1, 0.8, 0.0, 0.0], [0.1, 0.0, 1.0, 1.0], [0.9, 0.5, 0.5, 0.5]])
    grey = (erased(pictures, drawn, 0.5) == 128).mean(axis=(1, 2, 3))
    assert grey == pytest.approx([0.25, 0.05, 0.0], abs=0.05)


@pytest.mark.parametrize("operation", RANDOM_OPERATIONS, ids=lambda operation: operation.__name__)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("amount", [-1.0, 0.0, 0.7])
def test_every_operation_gives_a_picture_of_the_same_kind(operation: object, channels: int, amount: float) -> None:
    pixels = np.linspace(60, 180, 12 * 12 * channels).astype(np.uint8).reshape(12, 12, channels)
    found = as_pixels(operation(from_pixels(pixels), amount))  # type: ignore[operator]
    assert found.shape == pixels.shape
    if amount == 0.0 and operation.__name__ != "_even_out":  # type: ignore[attr-defined]
        assert np.abs(found[1:-1, 1:-1].astype(int) - pixels[1:-1, 1:-1]).max() <= 1


# ---- mixing


def test_mixup_blends_by_the_share_that_it_reports() -> None:
    how = mixing(ROWS, 40, 12, 1, 2, Augmentation(mixup=0.4))
    others = PICTURES[how.partners]
    share = how.shares[:, None, None, None]
    np.testing.assert_allclose(how.blend(PICTURES, others), PICTURES * share + others * (1 - share), atol=1e-3)
    assert not how.pasted.any()
    assert len(set(how.partners.tolist())) > 15


def test_cutmix_pastes_a_rectangle_and_reports_what_is_left() -> None:
    how = mixing(ROWS, 40, 12, 1, 2, Augmentation(cutmix=1.0))
    black, white = np.zeros((40, 12, 12, 1), np.uint8), np.full((40, 12, 12, 1), 255, np.uint8)
    pasted = how.blend(black, white)
    assert set(np.unique(pasted)) == {0.0, 255.0}
    np.testing.assert_allclose(1 - pasted.mean(axis=(1, 2, 3)) / 255, how.shares, atol=1e-6)
    assert how.shares.std() > 0.1


def test_both_take_turns() -> None:
    how = mixing(np.arange(400), 400, 12, 1, 2, Augmentation(mixup=0.2, cutmix=1.0))
    assert 150 < how.pasted.sum() < 250


def test_mixing_is_a_function_of_seed_epoch_and_picture() -> None:
    settings = Augmentation(mixup=0.2, cutmix=1.0)
    whole, few = mixing(ROWS, 40, 12, 1, 2, settings), mixing(ROWS[[9, 4]], 40, 12, 1, 2, settings)
    assert np.array_equal(few.partners, whole.partners[[9, 4]])
    assert np.array_equal(few.shares, whole.shares[[9, 4]])
    assert not np.array_equal(mixing(ROWS, 40, 12, 1, 3, settings).shares, whole.shares)
