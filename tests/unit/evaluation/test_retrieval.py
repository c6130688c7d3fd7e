from __future__ import annotations

import numpy as np
import pytest

from headwise.evaluation.retrieval import nearest, normalised, partner_ranks, spearman


def test_ranks_are_those_of_sorting_all_cosines() -> None:
    chance = np.random.default_rng(1)
    one, other = (normalised(chance.normal(size=(1500, 8)).astype(np.float32)) for _ in range(2))
    scores = one @ other.T
    expected = [1 + int((row > row[place]).sum()) for place, row in enumerate(scores)]
    assert partner_ranks(one, other).tolist() == expected
    assert partner_ranks(one, one).tolist() == [1] * 1500


def test_vectors_that_are_all_equal_do_not_count_as_found() -> None:
    same = normalised(np.ones((4, 3), dtype=np.float32))
    assert partner_ranks(same, same).tolist() == [4] * 4


def test_the_nearest_come_first() -> None:
    vectors = normalised(np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32))
    assert [place for place, _ in nearest(vectors[0], vectors, 2)] == [0, 2]
    assert nearest(vectors[0], vectors, 9)[-1] == (1, 0)


def test_zeros_stay_zeros() -> None:
    assert normalised(np.zeros((1, 3), dtype=np.float32)).tolist() == [[0, 0, 0]]


def test_spearman_is_the_correlation_of_ranks_ties_included() -> None:
    assert spearman(np.array([1, 2, 3]), np.array([10, 100, 1000])) == pytest.approx(1)
    assert spearman(np.array([1, 2, 3]), np.array([3, 2, 1])) == pytest.approx(-1)
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert spearman(np.array([1, 5, 5, 9]), np.array([1, 2, 3, 4])) == pytest.approx(4.5 / np.sqrt(4.5 * 5))
    assert spearman(np.array([1, 1]), np.array([1, 2])) == 0
