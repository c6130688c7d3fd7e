from __future__ import annotations

import pytest
import torch

import headwise as hw
from headwise.errors import ShapeError
from headwise.nn.positions import LearnedPositions, NoRotation, RotaryPositions, SinusoidalPositions


def test_rotary_scores_depend_on_the_distance_only() -> None:
    torch.manual_seed(0)
    rotary, q, k = RotaryPositions(8), torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    score = {(i, j): (rotary.rotate(q, i) * rotary.rotate(k, j)).sum() for i, j in [(3, 1), (10, 8), (7, 7), (0, 0)]}
    torch.testing.assert_close(score[3, 1], score[10, 8])
    torch.testing.assert_close(score[7, 7], score[0, 0])


def test_sinusoidal_positions_grow_at_inference() -> None:
    positions = SinusoidalPositions(8, initial_length=4)
    out = positions(torch.zeros(1, 50, 8))
    torch.testing.assert_close(out[0], hw.nn.sinusoidal_positions(50, 8))
    torch.testing.assert_close(positions(torch.zeros(1, 3, 8), start=47)[0], out[0, 47:])


def test_without_rotation_queries_and_keys_stay_as_they_are() -> None:
    x = torch.randn(1, 2, 3, 4)
    assert NoRotation().rotate(x, 7) is x
    assert (NoRotation().rotates, RotaryPositions(4).rotates) == (False, True)


def test_what_positions_cannot_do_is_one_clear_line() -> None:
    with pytest.raises(ShapeError, match=r"an input of 4 tokens is longer than the 3 learned positions.*max_length"):
        LearnedPositions(4, 3)(torch.zeros(1, 4, 4))
    with pytest.raises(ShapeError, match=r"need an even head size .*, not 3"):
        RotaryPositions(3)
    with pytest.raises(ShapeError, match=r"need an even model_dim .*, not 3"):
        hw.nn.sinusoidal_positions(4, 3)
