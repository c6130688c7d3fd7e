from __future__ import annotations

import numpy as np
import pytest

from headwise.image.random_numbers import beta, uniforms


def test_a_picture_draws_the_same_whatever_is_beside_it() -> None:
    every = uniforms(1, 2, np.arange(100), 5)
    assert np.array_equal(uniforms(1, 2, np.array([70, 3]), 5), every[[70, 3]])
    assert np.array_equal(uniforms(1, 2, np.arange(100), 3), every[:, :3])


def test_seeds_epochs_pictures_and_draws_are_independent_and_uniform() -> None:
    blocks = [uniforms(seed, epoch, np.arange(2000), 4) for seed in (0, 1) for epoch in (0, 1)]
    columns = np.concatenate(blocks, axis=1).T  # 16 series of 2,000
    assert np.abs(np.corrcoef(columns) - np.eye(16)).max() < 0.1
    assert np.abs([np.corrcoef(series[:-1], series[1:])[0, 1] for series in columns]).max() < 0.1
    counts = np.stack([np.histogram(series, 10, (0, 1))[0] for series in columns])
    assert np.abs(counts - 200).max() < 5 * 200**0.5
    assert columns.min() >= 0
    assert columns.max() < 1
    assert len(np.unique(columns)) == columns.size


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0, 4.0])
def test_beta_has_its_mean_and_variance(alpha: float) -> None:
    drawn = beta((np.arange(100_000) + 0.5) / 100_000, alpha)
    assert drawn.mean() == pytest.approx(0.5, abs=1e-3)
    assert drawn.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.02)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
