"""How good sentence vectors are: whether partners find each other, and whether cosines agree with people. No torch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_ROWS = 1024  # compared with all others at a time


def normalised(vectors: Floats) -> Floats:
    """Vectors of length 1; a vector of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def partner_ranks(texts: Floats, partners: Floats) -> NDArray[np.int64]:
    """For each text the rank, from 1, of its own partner among all by cosine; equal ones count against it."""
    ranks = np.empty(len(texts), dtype=np.int64)
    for start in range(0, len(texts), _ROWS):
        scores = texts[start : start + _ROWS] @ partners.T
        own = scores[np.arange(len(scores)), np.arange(start, start + len(scores))]
        ranks[start : start + _ROWS] = (scores >= own[:, None]).sum(axis=1)
    return ranks


def nearest(query: Floats, vectors: Floats, top: int) -> list[tuple[int, float]]:
    """The places of the vectors most similar to a query, with their cosines, most similar first."""
    scores = vectors @ query
    order = np.argsort(-scores, kind="stable")[:top]
    return [(int(place), float(scores[place])) for place in order]


def spearman(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    """The correlation of ranks; equal values share the mean of their ranks."""
    ranks = [_ranks(np.asarray(values, dtype=np.float64)) for values in (first, second)]
    centred = [rank - rank.mean() for rank in ranks]
    norm = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / norm if norm else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    means = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(means[inverse])
