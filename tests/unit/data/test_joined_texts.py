from __future__ import annotations

import pytest

from headwise.data.joined_texts import encoded, joined
from headwise.text.ragged import Ragged

B, E = 2, 3  # begin and end of sentence


def test_a_pair_is_begin_text_end_text_end() -> None:
    pair = joined([Ragged.of([[7, 8], [], [9]]), Ragged.of([[5], [6, 6], []])])
    assert pair.sentences() == [[7, 8, E, 5], [E, 6, 6], [9, E]]
    assert encoded([Ragged.of([[7, 8]]), Ragged.of([[5]])]) == [[B, 7, 8, E, 5, E]]


def test_two_ends_may_stand_between_the_texts() -> None:
    pair = [Ragged.of([[7, 8], []]), Ragged.of([[5], [6, 6]])]
    assert encoded(pair, ends=2) == [[B, 7, 8, E, E, 5, E], [B, E, E, 6, 6, E]]
    assert [len(ids) for ids in encoded(pair, longest=6, ends=2)] == [6, 6]


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
