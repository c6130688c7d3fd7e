"""Batches by token budget: bounded, each sentence once, a pure function of seed and epoch, shared out exactly."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.config import schema
from headwise.data import plan as planning
from headwise.data.batch import Batch
from headwise.data.batches import Cursor, PairBatches, walk
from headwise.data.plan import Planner
from headwise.data.store import Store
from headwise.errors import DataError
from headwise.text.corpus import read_lines
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import PAD, Tokenizer

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


def test_cursors_lead_to_the_same_batches_as_walking(pair_store: Callable[..., Store]) -> None:
    batches = PairBatches(pair_store(), 100, seed=3)
    walked = list(walk(batches, epochs=2))
    assert walked[0][1] == Cursor(0, 1)
    assert walked[-1][1] == Cursor(2, 0)
    assert walked[batches.count(0) - 1][1] == Cursor(1, 0)
    for (_, cursor), (batch, _) in pairwise(walked):
        again, _ = next(walk(batches, cursor))
        assert same(again, batch)


def same(one: Batch, other: Batch) -> bool:
    return one.source.tolist() == other.source.tolist() and one.lines.tolist() == other.lines.tolist()


def test_a_batch_holds_the_texts_of_its_lines(pair_store: Callable[..., Store]) -> None:
    store = pair_store()
    for batch, _ in walk(PairBatches(store, 100, seed=3), epochs=1):
        rows = store.rows("source", batch.lines - 1)  # every line was kept, so line n is row n - 1
        assert batch.source_lengths.tolist() == (rows.lengths + 1).tolist()
        assert batch.source[0, : rows.lengths[0]].tolist() == rows.tokens[: rows.lengths[0]].tolist()


@pytest.mark.parametrize("world", [2, 3])
def test_the_shares_of_ranks_are_disjoint_and_make_up_the_batch_of_one(
    pair_store: Callable[..., Store], world: int
) -> None:
    store = pair_store()
    alone = PairBatches(store, 100, seed=3)
    ranks = [PairBatches(store, 100, seed=3, rank=rank, world=world) for rank in range(world)]
    for index in range(alone.count(1)):
        whole = alone.make(Cursor(1, index))
        shares = [rank.make(Cursor(1, index)) for rank in ranks]
        assert np.concatenate([share.lines for share in shares]).tolist() == whole.lines.tolist()
        assert sum(share.tokens for share in shares) == whole.tokens
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_validation_batches_have_every_sentence_in_a_fixed_order(pair_store: Callable[..., Store]) -> None:
    batches = PairBatches(pair_store(), 100, shuffle=False)
    epochs = [[batch.lines.tolist() for batch, _ in walk(batches, Cursor(epoch, 0), epoch + 1)] for epoch in (0, 1)]
    assert epochs[0] == epochs[1]
    assert sorted(line for lines in epochs[0] for line in lines) == list(range(1, 301))


def test_resampled_pieces_are_asked_for_by_epoch_and_row(pair_store: Callable[..., Store]) -> None:
    asked = []

    def doubled(epoch: int, rows: np.ndarray, sentences: Ragged) -> Ragged:
        asked.append((epoch, rows.tolist()))
        return Ragged(np.repeat(sentences.tokens, 2), sentences.lengths * 2)

    store = pair_store()
    batch = PairBatches(store, 100, seed=3, resample=(doubled, doubled)).make(Cursor(2, 1))
    rows = batch.lines - 1
    assert asked[-2:] == [(2, rows.tolist())] * 2
    assert (batch.source_lengths - 1).tolist() == (2 * store.lengths("source")[rows]).tolist()


def test_sentences_are_batched_by_the_pieces_that_were_drawn(pair_store: Callable[..., Store]) -> None:
    def drawn(epoch: int, rows: np.ndarray, sentences: Ragged) -> Ragged:
        times = 1 + (rows + epoch) % 4
        return Ragged(np.repeat(sentences.tokens, np.repeat(times, sentences.lengths)), sentences.lengths * times)

    def padding(batches: list[Batch]) -> float:
        sides = [side for batch in batches for side in batch.inputs[:2]]
        return 1 - sum(int((side != PAD).sum()) for side in sides) / sum(side.numel() for side in sides)

    store = pair_store()
    planned = PairBatches(store, 100, seed=3, resample=(drawn, drawn))
    in_order = [planned.make(Cursor(1, index)) for index in range(planned.count(1))]
    backwards = PairBatches(store, 100, seed=3, resample=(drawn, drawn))
    again = [backwards.make(Cursor(1, index)) for index in reversed(range(backwards.count(1)))]
    lines = [batch.lines.tolist() for batch in in_order]
    assert lines == [batch.lines.tolist() for batch in reversed(again)], "a batch depends on those made before it"
    assert sorted(line for batch in lines for line in batch) == list(range(1, 301))
    plain = PairBatches(store, 100, seed=3)
    unsorted = []
    for index in range(plain.count(1)):
        rows = plain.make(Cursor(1, index)).lines - 1
        sides = [drawn(1, rows, store.rows(side, rows)) for side in ("source", "target")]
        unsorted.append(Batch.of(*sides, rows + 1, index))
    assert padding(in_order) < 0.6 * padding(unsorted)


def test_padding_on_multi30k_is_at_most_five_percent_of_each_side(corpora: Path) -> None:
    sides = [[line.text for line in read_lines(corpora / f"multi30k/train.{code}.gz")] for code in ("en", "de")]
    tokenizer = Tokenizer.train(sides[0] + sides[1], schema.Tokenizer())
    source, target = (tokenizer.encode_ragged(lines).lengths for lines in sides)
    plan = Planner(source, target, 4096, seed=1).plan(0)
    for side in (source, target):
        padded = sum(len(rows) * (side[rows].max() + 1) for rows in map(plan.rows, range(len(plan))))
        assert 1 - (side + 1).sum() / padded <= 0.05
