"""Sound as a sequence."""

from __future__ import annotations

import math

import pytest
import torch

from headwise.errors import ShapeError
from headwise.nn.sound_stem import SoundPositions, SoundStem, sinusoids_in_halves


def test_two_frames_become_one_position() -> None:
    stem = SoundStem(20, 16)
    assert stem(torch.randn(2, 30, 20)).shape == (2, 15, 16)
    with pytest.raises(ShapeError, match=r"\(batch, frames, 20\)"):
        stem(torch.randn(2, 20, 30))


def test_a_position_hears_the_frames_around_it_only() -> None:
    stem, features = SoundStem(8, 6), torch.randn(1, 40, 8)
    changed = features.clone()
    changed[:, 20] += 1
    moved = (stem(features) - stem(changed)).abs().sum(dim=-1)[0] > 1e-6
    assert moved.nonzero().squeeze(1).tolist() == [9, 10, 11][: int(moved.sum())]


def test_sinusoids_stand_in_halves_and_reach_the_longest_wavelength() -> None:
    table = sinusoids_in_halves(100, 16)
    time = torch.arange(100.0)
    torch.testing.assert_close(table[:, 0], time.sin())
    torch.testing.assert_close(table[:, 8], time.cos())
    torch.testing.assert_close(table[:, 7], (time / 10_000).sin())
    ratio = math.exp(-math.log(10_000) / 7)
    torch.testing.assert_close(table[:, 1], (time * ratio).sin())
    with pytest.raises(ShapeError, match="even"):
        sinusoids_in_halves(10, 7)


def test_sound_that_is_too_long_is_refused() -> None:
    positions = SoundPositions(8, 10)
    x = torch.zeros(1, 4, 8)
    assert torch.equal(positions(x)[0], positions.table[:4])
    with pytest.raises(ShapeError, match="12 positions is longer than the model's 10"):
        positions(torch.zeros(1, 12, 8))
