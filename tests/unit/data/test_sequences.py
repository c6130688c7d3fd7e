from __future__ import annotations

import numpy as np
import pytest
import torch

from headwise.data.sequences import NO_LABEL, joined, sequence_batch, sequence_inputs
from headwise.text.ragged import Ragged

B, E = 2, 3  # begin and end of sentence


def test_an_input_is_begin_text_end_padded() -> None:
    ids, lengths = sequence_inputs(Ragged.of([[7, 8, 9], [5]]))
    assert ids.tolist() == [[B, 7, 8, 9, E], [B, 5, E, 0, 0]]
    assert lengths.tolist() == [5, 3]


def test_a_pair_is_begin_text_end_text_end() -> None:
    pair = joined([Ragged.of([[7, 8], [], [9]]), Ragged.of([[5], [6, 6], []])])
    assert pair.sentences() == [[7, 8, E, 5], [E, 6, 6], [9, E]]
    ids, lengths = sequence_inputs(pair)
    assert ids.tolist() == [[B, 7, 8, E, 5, E], [B, E, 6, 6, E, 0], [B, 9, E, E, 0, 0]]
    assert lengths.tolist() == [6, 5, 4]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (10, 2, (5, 2)),  # the longer one gives way
        (2, 10, (2, 5)),
        (10, 10, (4, 3)),
        (3, 3, (3, 3)),
        (4, 10, (4, 3)),
    ],
)
def test_a_long_pair_is_cut_where_it_is_longest(first: int, second: int, expected: tuple[int, int]) -> None:
    pair = joined([Ragged.of([[7] * first]), Ragged.of([[8] * second])], longest=10)
    (row,) = pair.sentences()
    assert (row.count(7), row.count(8)) == expected
    assert len(row) + 2 <= 10


def test_a_long_text_keeps_its_beginning() -> None:
    assert joined([Ragged.of([[4, 5, 6, 7], [8]])], longest=5).sentences() == [[4, 5, 6], [8]]
    assert joined([Ragged.of([[4, 5, 6, 7], [8]])]).sentences() == [[4, 5, 6, 7], [8]]


def test_labels_count_whichever_class_they_are_and_shares_are_as_wide_as_their_rows() -> None:
    batch = sequence_batch(Ragged.of([[7, 8, 9], [5]]), torch.tensor([0, 1]))
    assert (batch.tokens, batch.ignore) == (2, NO_LABEL)
    long, short = batch.split(2)
    assert long.inputs[0].shape == (1, 5)
    assert short.inputs[0].tolist() == [[B, 5, E]]
    assert short.targets.tolist() == [1]
    assert np.array_equal(short.lines, [2])
