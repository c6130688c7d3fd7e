"""Random numbers as a pure function of (seed, epoch, picture), for all pictures of a batch at once.

A picture's numbers do not depend on the batch, the rank or the thread that it is in, and a resumed run draws the same.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniforms(seed: int, epoch: int, pictures: NDArray[np.integer], count: int) -> Floats:
    """Numbers in [0, 1): (pictures, count).

    A hash of the four coordinates by SplitMix64's finaliser (Steele et al. 2014), which passes the usual tests of
    randomness for counters as inputs.
    """
    start = _mixed(np.uint64(seed % 2**64), np.uint64(epoch % 2**64))
    rows = _mixed(start, np.asarray(pictures).astype(np.uint64))[:, None]
    bits = _mixed(rows, np.arange(count, dtype=np.uint64)[None])
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(state: NDArray[np.uint64] | np.uint64, value: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        x = np.asarray(state) + (np.asarray(value) + np.uint64(1)) * _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


def beta(uniform: Floats, alpha: float) -> Floats:
    """Numbers of the distribution Beta(alpha, alpha), made of uniform ones by its inverse."""
    cumulative, places = _beta_table(alpha)
    return np.interp(uniform, cumulative, places)


@lru_cache(maxsize=8)
def _beta_table(alpha: float) -> tuple[Floats, Floats]:
    """The distribution at places that lie closer towards 0 and 1, where for alpha < 1 most of it is."""
    places = np.sin(np.linspace(0, np.pi / 2, 8193)) ** 2
    # With x = sin² t the density x^(a-1) (1-x)^(a-1) dx is 2 (sin t cos t)^(2a-1) dt, which is tame for a >= 1/2.
    angle = (np.linspace(0, np.pi / 2, 8193)[1:] + np.linspace(0, np.pi / 2, 8193)[:-1]) / 2
    mass = np.concatenate(([0.0], np.cumsum((np.sin(angle) * np.cos(angle)) ** (2 * alpha - 1))))
    return mass / mass[-1], places
