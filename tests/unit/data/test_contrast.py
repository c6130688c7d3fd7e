from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_stores import sentences, store_of, words

from headwise.data.contrast import ContrastBatches
from headwise.data.cursor import Cursor
from headwise.errors import DataError


def store(folder: Path, count: int = 50):  # type: ignore[no-untyped-def]
    return store_of(folder, source=sentences(count, 1, 6), target=sentences(count, 2, 9))


def texts(batch) -> list[tuple[str, str]]:  # type: ignore[no-untyped-def]
    """The pairs of a batch, as text."""
    found = []
    for ids, lengths in zip(*batch.inputs, strict=True):
        rows = [words().decode(row[:length].tolist()) for row, length in zip(ids, lengths, strict=True)]
        found += list(zip(rows[: len(rows) // 2], rows[len(rows) // 2 :], strict=True))
    return found


def test_groups_hold_pairs_as_they_stand_in_the_table(tmp_path: Path) -> None:
    pairs = set(zip(sentences(50, 1, 6), sentences(50, 2, 9), strict=True))
    batches = ContrastBatches(store(tmp_path), 400, 8, seed=1)
    seen = [pair for index in range(batches.count(0)) for pair in texts(batches.make(Cursor(0, index)))]
    assert len(seen) == 48, "whole groups only"
    assert set(seen) <= pairs
    batch = batches.make(Cursor(0, 0))
    assert batch.targets.tolist() == [list(range(8))] * len(batch)
    assert batch.tokens == 8 * len(batch)


def test_epochs_differ_and_each_batch_can_be_made_by_itself(tmp_path: Path) -> None:
    one, other = (ContrastBatches(store(tmp_path), 400, 8, seed=1) for _ in range(2))
    first = texts(one.make(Cursor(0, 0)))
    assert texts(one.make(Cursor(1, 0))) != first
    assert texts(other.make(Cursor(0, 0))) == first


def test_validation_has_every_pair_once_in_order_the_last_group_smaller(tmp_path: Path) -> None:
    batches = ContrastBatches(store(tmp_path), 400, 8, shuffle=False)
    seen = [pair for index in range(batches.count(0)) for pair in texts(batches.make(Cursor(0, index)))]
    assert seen == list(zip(sentences(50, 1, 6), sentences(50, 2, 9), strict=True))


def test_ranks_share_whole_groups(tmp_path: Path) -> None:
    whole = ContrastBatches(store(tmp_path), 1000, 4, seed=1)
    parts = [ContrastBatches(store(tmp_path), 1000, 4, seed=1, rank=rank, world=2) for rank in range(2)]
    batch, shares = whole.make(Cursor(0, 0)), [part.make(Cursor(0, 0)) for part in parts]
    assert [pair for share in shares for pair in texts(share)] == texts(batch)
    assert np.array_equal(np.concatenate([share.lines for share in shares]), batch.lines)
    assert batch.blank().inputs[0].size(0) == 1


def test_one_pair_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only one pair"):
        ContrastBatches(store(tmp_path, 1), 400, 8)
