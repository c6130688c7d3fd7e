"""Sentence pairs as a translator reads them: begin and end of sentence, shares of ranks, resampled pieces."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch

from headwise.data.batch import Batch
from headwise.data.cursor import Cursor, walk
from headwise.data.pairs import PairBatches, pair_batch
from headwise.data.store import Store
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import PAD


def example() -> Batch:
    source = Ragged.of([[10, 11, 12], [13], [], [14, 15]])
    target = Ragged.of([[20], [21, 22], [23, 24, 25], []])
    return pair_batch(source, target, np.array([7, 3, 9, 1]), index=5)


def test_sides_carry_begin_and_end_where_the_model_needs_them() -> None:
    batch = example()
    source, target_input, source_lengths = batch.inputs
    assert source.tolist() == [[10, 11, 12, 3], [13, 3, 0, 0], [3, 0, 0, 0], [14, 15, 3, 0]]
    assert target_input.tolist() == [[2, 20, 0, 0], [2, 21, 22, 0], [2, 23, 24, 25], [2, 0, 0, 0]]
    assert batch.targets.tolist() == [[20, 3, 0, 0], [21, 22, 3, 0], [23, 24, 25, 3], [3, 0, 0, 0]]
    assert source.dtype == target_input.dtype == torch.int64
    assert source_lengths.tolist() == [4, 2, 1, 3]


def test_the_decoder_reads_just_what_it_said_before() -> None:
    batch = example()
    for read, said, length in zip(batch.inputs[1], batch.targets, (2, 3, 4, 1), strict=True):
        assert read[1:length].tolist() == said[: length - 1].tolist()


def test_counts_are_of_real_tokens() -> None:
    batch = example()
    assert (len(batch), batch.tokens, batch.padding, batch.index) == (4, 10, 1 - 10 / 16, 5)
    assert batch.lines.tolist() == [7, 3, 9, 1]


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 9])
def test_micro_batches_are_the_same_pairs_no_wider_than_needed(parts: int) -> None:
    batch = example()
    pieces = batch.split(parts)
    assert len(pieces) == min(parts, 4)
    assert sum(piece.tokens for piece in pieces) == batch.tokens
    assert np.concatenate([piece.lines for piece in pieces]).tolist() == batch.lines.tolist()
    for piece in pieces:
        source, target_input, lengths = piece.inputs
        assert source.shape[1] == lengths.max()
        assert target_input.shape == piece.targets.shape
        assert piece.targets.shape[1] == (piece.targets != PAD).sum(dim=1).max()
    assert batch.split(2)[1].inputs[0].tolist() == [[3, 0, 0], [14, 15, 3]]


def test_an_empty_share_is_a_batch_without_sentences() -> None:
    empty = pair_batch(Ragged.of([]), Ragged.of([]))
    assert (len(empty), empty.tokens, empty.padding) == (0, 0, 0.0)
    assert empty.split(2) == []


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
    return one.inputs[0].tolist() == other.inputs[0].tolist() and one.lines.tolist() == other.lines.tolist()


def test_a_batch_holds_the_texts_of_its_lines(pair_store: Callable[..., Store]) -> None:
    store = pair_store()
    for batch, _ in walk(PairBatches(store, 100, seed=3), epochs=1):
        rows = store.rows("source", batch.lines - 1)  # every line was kept, so line n is row n - 1
        source, _, lengths = batch.inputs
        assert lengths.tolist() == (rows.lengths + 1).tolist()
        assert source[0, : rows.lengths[0]].tolist() == rows.tokens[: rows.lengths[0]].tolist()


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
    assert (batch.inputs[2] - 1).tolist() == (2 * store.lengths("source")[rows]).tolist()


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
        unsorted.append(pair_batch(*sides, rows + 1, index))
    assert padding(in_order) < 0.6 * padding(unsorted)
