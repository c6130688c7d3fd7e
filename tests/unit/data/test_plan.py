"""Batches by token budget: bounded, each sentence once, a pure function of seed and epoch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.config import schema
from headwise.data import plan as planning
from headwise.data.plan import Planner
from headwise.errors import DataError
from headwise.text.corpus import read_lines
from headwise.text.tokenizer import Tokenizer

lengths = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=200)


@settings(max_examples=100, deadline=None)
@given(pairs=lengths, budget=st.integers(41, 300), epoch=st.integers(0, 5))
def test_every_sentence_is_in_one_batch_and_no_batch_is_over_the_budget(
    pairs: list[tuple[int, int]], budget: int, epoch: int
) -> None:
    source, target = np.array(pairs).T
    plan = Planner(source, target, budget, seed=1).plan(epoch)
    rows = [plan.rows(index) for index in range(len(plan))]
    assert sorted(np.concatenate(rows).tolist()) == list(range(len(pairs)))
    for row in rows:
        longest = max(source[row].max(), target[row].max()) + 1  # with its end of sentence
        assert 0 < len(row) * longest <= budget


def test_an_epoch_is_a_function_of_seed_and_epoch() -> None:
    chance = np.random.default_rng(0)
    source, target = chance.integers(1, 30, (2, 500))

    def order(seed: int, epoch: int) -> list[list[int]]:
        plan = Planner(source, target, 200, seed).plan(epoch)
        return [plan.rows(index).tolist() for index in range(len(plan))]

    assert order(1, 3) == order(1, 3)
    assert order(1, 3) != order(1, 4)
    assert order(1, 3) != order(2, 3)
    as_sets = [{frozenset(batch) for batch in order(1, epoch)} for epoch in (3, 4)]
    assert len(as_sets[0] & as_sets[1]) < len(as_sets[0]) / 2  # other batches, not only another order of them


def test_batches_do_not_come_by_length() -> None:
    chance = np.random.default_rng(0)
    source = chance.integers(1, 30, 2000)
    plan = Planner(source, source, 200, seed=1).plan(0)
    widths = np.array([source[plan.rows(index)].max() for index in range(len(plan))])
    assert abs(np.corrcoef(widths, np.arange(len(widths)))[0, 1]) < 0.3


def test_pools_bound_what_is_sorted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "POOL", 64)
    source = np.random.default_rng(0).integers(1, 30, 500)
    plan = Planner(source, source, 100, seed=1).plan(0)
    rows = [plan.rows(index) for index in range(len(plan))]
    assert sorted(np.concatenate(rows).tolist()) == list(range(500))
    assert max(len(row) * (source[row].max() + 1) for row in rows) <= 100


def test_sentences_longer_than_a_batch_are_dropped_and_counted() -> None:
    planner = Planner(np.array([5, 10, 9, 3]), np.array([5, 5, 9, 12]), 10, seed=1)
    assert planner.dropped == 2
    assert sorted(planner.plan(0).order.tolist()) == [0, 2]
    assert Planner(np.array([5, 9]), np.array([5, 9]), 10, seed=1, longest=6).dropped == 1
    with pytest.raises(DataError, match="batch_tokens"):
        Planner(np.array([50]), np.array([5]), 10, seed=1)


def test_padding_on_multi30k_is_at_most_five_percent_of_each_side(corpora: Path) -> None:
    sides = [[line.text for line in read_lines(corpora / f"multi30k/train.{code}.gz")] for code in ("en", "de")]
    tokenizer = Tokenizer.train(sides[0] + sides[1], schema.Tokenizer())
    source, target = (tokenizer.encode_ragged(lines).lengths for lines in sides)
    plan = Planner(source, target, 4096, seed=1).plan(0)
    for side in (source, target):
        padded = sum(len(rows) * (side[rows].max() + 1) for rows in map(plan.rows, range(len(plan))))
        assert 1 - (side + 1).sum() / padded <= 0.05
