"""Paired tests tell a real difference from chance, with the same result every time."""

from __future__ import annotations

import random

import pytest

from headwise.errors import DataError, UsageError
from headwise.evaluation.metrics import corpus_scores
from headwise.evaluation.significance import compare

REFERENCE = [
    f"the {a} {b} sees a {c} house" for a in ("old", "new", "red") for b in ("dog", "cat") for c in ("big", "tiny")
]


def damaged(share: float, seed: int) -> list[str]:
    choose = random.Random(seed)
    return [" ".join("xxx" if choose.random() < share else word for word in line.split()) for line in REFERENCE * 5]


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_a_much_better_output_is_significantly_better(test: str) -> None:
    bad, good = damaged(0.5, 1), damaged(0.05, 2)
    for one in compare(bad, good, REFERENCE * 5, test=test, samples=200):
        assert one.significant
        assert one.difference * one.better > 0


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_an_output_does_not_differ_from_itself(test: str) -> None:
    output = damaged(0.3, 1)
    assert not any(one.significant for one in compare(output, output, REFERENCE * 5, test=test, samples=100))


def test_two_equally_bad_outputs_are_not_called_different() -> None:
    comparisons = compare(damaged(0.3, 3), damaged(0.3, 4), REFERENCE * 5, samples=200, metrics=("bleu", "chrf"))
    assert not any(one.significant for one in comparisons)


def test_the_scores_compared_are_the_corpus_scores_and_the_seed_is_in_the_signature() -> None:
    first, second = damaged(0.3, 1), damaged(0.2, 2)
    comparisons = compare(first, second, REFERENCE * 5, samples=50)
    assert [one.baseline for one in comparisons] == pytest.approx(
        [s.value for s in corpus_scores(first, REFERENCE * 5)]
    )
    assert [one.system for one in comparisons] == pytest.approx([s.value for s in corpus_scores(second, REFERENCE * 5)])
    assert all("seed:" in one.signature and "bs:50" in one.signature for one in comparisons)
    assert comparisons == compare(first, second, REFERENCE * 5, samples=50)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown significance test"):
        compare(["a"], ["a"], ["a"], test="guess")
    with pytest.raises(DataError, match="must belong"):
        compare(["a"], ["a", "b"], ["a"])
