from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_stores import WORDS, sentences, store_of

from headwise.data.cursor import Cursor
from headwise.data.masked import MaskedBatches, candidates, masked_batch
from headwise.data.masking import Masking
from headwise.errors import DataError
from headwise.text.ragged import Ragged

MASK = 4 + len(WORDS)
RULE = Masking(MASK, candidates(MASK + 1, (0, 1, 2, 3, MASK)), seed=1)


def test_inputs_have_begin_and_end_and_targets_only_where_something_is_hidden() -> None:
    text, seen = Ragged.of([[5, 6, 7], [8]]), Ragged.of([[5, MASK, 7], [8]])
    batch = masked_batch(seen, text, np.array([False, True, False, False]))
    assert batch.inputs[0].tolist() == [[2, 5, MASK, 7, 3], [2, 8, 3, 0, 0]]
    assert batch.targets.tolist() == [[0, 0, 6, 0, 0], [0, 0, 0, 0, 0]]
    assert batch.tokens == 1
    second = batch.split(2)[1]
    assert second.inputs[0].tolist() == [[2, 8, 3]]
    assert second.targets.shape == (1, 3)


def test_every_token_of_the_text_is_seen_once_per_epoch_and_long_lines_are_cut(tmp_path: Path) -> None:
    lines = sentences(60, 1, 40)
    store = store_of(tmp_path, text=lines)
    batches = MaskedBatches(store, 100, RULE, longest=12)
    for epoch in (0, 1):
        tokens, asked, seen_lines = 0, 0, set()
        for index in range(batches.count(epoch)):
            batch = batches.make(Cursor(epoch, index))
            ids, lengths = batch.inputs
            assert ids.size(1) <= 12
            assert ids.numel() <= 100
            tokens += int(lengths.sum()) - 2 * len(lengths)
            asked += batch.tokens
            seen_lines |= set(batch.lines.tolist())
        assert tokens == sum(len(line.split()) for line in lines)
        assert seen_lines == set(range(1, 61))
        assert abs(asked - 0.15 * tokens) <= batches.count(epoch)


def test_batches_depend_on_seed_and_epoch_alone_and_validation_never_changes(tmp_path: Path) -> None:
    store = store_of(tmp_path, text=sentences(60, 1))
    first, again = (MaskedBatches(store, 100, RULE) for _ in range(2))
    list(map(first.make, (Cursor(0, index) for index in range(3))))
    one, other = first.make(Cursor(2, 1)), again.make(Cursor(2, 1))
    assert all(
        np.array_equal(a, b) for a, b in zip((*one.inputs, one.targets), (*other.inputs, other.targets), strict=True)
    )
    fixed = MaskedBatches(store, 100, RULE, shuffle=False)
    assert np.array_equal(fixed.make(Cursor(0, 0)).targets, fixed.make(Cursor(3, 0)).targets)
    changes = [first.make(Cursor(epoch, 0)).targets.tolist() for epoch in range(3)]
    assert changes[0] != changes[1] != changes[2]


def test_tokens_that_are_not_asked_for_are_no_padding() -> None:
    rows = Ragged.of([list(range(5, 43)), list(range(5, 23))])  # with begin and end 40 and 20 of 80 places
    asked = np.arange(56) % 4 == 0
    batch = masked_batch(rows, rows, asked)
    assert (batch.tokens, batch.positions, batch.padding) == (14, 19, pytest.approx(0.25, abs=0.02))


def test_ranks_share_each_batch(tmp_path: Path) -> None:
    store = store_of(tmp_path, text=sentences(60, 1))
    whole = MaskedBatches(store, 200, RULE)
    parts = [MaskedBatches(store, 200, RULE, rank=rank, world=2) for rank in range(2)]
    for index in range(whole.count(0)):
        batch, shares = whole.make(Cursor(0, index)), [part.make(Cursor(0, index)) for part in parts]
        assert [*shares[0].lines, *shares[1].lines] == batch.lines.tolist()
        assert sum(share.tokens for share in shares) in (batch.tokens, batch.tokens + 1)


def test_a_batch_always_asks_something(tmp_path: Path) -> None:
    batches = MaskedBatches(store_of(tmp_path, text=["a"]), 100, RULE)
    assert all(batches.make(Cursor(epoch, 0)).tokens == 1 for epoch in range(10))


def test_no_text_and_no_room_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no room for text"):
        MaskedBatches(store_of(tmp_path, text=["a"]), 100, RULE, longest=2)


def test_special_tokens_replace_nothing() -> None:
    assert candidates(8, (0, 1, 2, 3, 7)).tolist() == [4, 5, 6]
