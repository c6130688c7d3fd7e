"""One batch for all tasks: padded tensors, true counts, and micro-batches of the same rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headwise.data.batch import Batch, pad
from headwise.text.ragged import Ragged

LENGTHS = np.array([3, 1, 2])
IDS = torch.tensor([[5, 6, 7], [8, 0, 0], [9, 10, 0]])


def labelled(**changes: object) -> Batch:
    """Texts with one label per row, of which -100 does not count: targets have one axis."""
    inputs = IDS, torch.from_numpy(LENGTHS)
    given: dict[str, object] = {"widths": (LENGTHS, None, None), "ignore": -100, "index": 4, **changes}
    return Batch.of(inputs, torch.tensor([0, -100, 2]), **given)  # type: ignore[arg-type]


def pictures(rows: int = 3) -> Batch:
    """Nothing is padded."""
    return Batch.of((torch.ones(rows, 2, 4, 4),), torch.arange(rows), ignore=-100)


def test_sentences_are_padded_with_begin_and_end_where_asked() -> None:
    sentences = Ragged.of([[10, 11], [], [12]])
    assert pad(sentences).tolist() == [[10, 11], [0, 0], [12, 0]]
    assert pad(sentences, start=2).tolist() == [[2, 10, 11], [2, 0, 0], [2, 12, 0]]
    assert pad(sentences, end=3).tolist() == [[10, 11, 3], [3, 0, 0], [12, 3, 0]]
    assert pad(sentences, start=2, end=3).tolist() == [[2, 10, 11, 3], [2, 3, 0, 0], [2, 12, 3, 0]]
    assert pad(sentences).dtype == torch.int64


def test_targets_that_are_ignored_do_not_count() -> None:
    batch = labelled()
    assert (len(batch), batch.tokens, batch.lines.tolist()) == (3, 2, [1, 2, 3])
    assert batch.padding == pytest.approx(1 / 3)
    assert pictures().tokens == 3, "a label of 0 is not padding where something else is ignored"
    assert Batch.of((IDS,), IDS).tokens == 6


def test_a_batch_says_whether_rows_or_tokens_are_counted() -> None:
    soft = Batch.of((torch.ones(3, 2, 4, 4),), torch.full((3, 5), 0.2))
    assert [batch.unit for batch in (labelled(), pictures(), soft, Batch.of((IDS,), IDS))] == ["rows"] * 3 + ["tokens"]


@pytest.mark.parametrize("parts", [1, 2, 3, 9])
def test_micro_batches_are_the_same_rows_no_wider_than_their_longest(parts: int) -> None:
    batch = labelled(lines=np.array([7, 3, 9]))
    pieces = batch.split(parts)
    assert len(pieces) == min(parts, 3)
    assert sum(piece.tokens for piece in pieces) == batch.tokens
    assert np.concatenate([piece.lines for piece in pieces]).tolist() == [7, 3, 9]
    assert torch.equal(torch.cat([piece.targets for piece in pieces]), batch.targets)
    for piece in pieces:
        ids, lengths = piece.inputs
        assert ids.shape[1] == lengths.max()
        assert (piece.ignore, piece.index) == (-100, 4)


def test_what_is_not_padded_keeps_its_width() -> None:
    first, second = pictures().split(2)
    assert (first.inputs[0].shape, second.inputs[0].shape) == ((1, 2, 4, 4), (2, 2, 4, 4))
    assert second.targets.tolist() == [1, 2]
    padded_at_will = Batch.of((IDS,), IDS)  # without widths nothing is known of padding
    assert [piece.inputs[0].shape[1] for piece in padded_at_will.split(3)] == [3, 3, 3]


def test_a_split_can_be_split_again() -> None:
    _, rest = labelled().split(2)
    assert [piece.inputs[0].tolist() for piece in rest.split(2)] == [[[8]], [[9, 10]]]


@pytest.mark.parametrize("kind", ["labels", "pictures", "tokens"])
def test_a_blank_batch_has_one_row_of_the_least_width_and_one_target_that_counts(kind: str) -> None:
    tokens = Batch.of((IDS,), IDS, widths=(LENGTHS, LENGTHS))
    blank = {"labels": labelled(), "pictures": pictures(), "tokens": tokens}[kind].blank()
    assert (len(blank), blank.tokens) == (1, 1)
    shapes = [tuple(tensor.shape) for tensor in (*blank.inputs, blank.targets)]
    expected = {"labels": [(1, 1), (1,), (1,)], "pictures": [(1, 2, 4, 4), (1,)], "tokens": [(1, 1), (1, 1)]}
    assert shapes == expected[kind]
    if kind == "labels":
        assert blank.inputs[1].tolist() == [1]  # the length of its row
        assert (blank.index, blank.ignore) == (4, -100)


def test_a_share_without_rows_has_a_blank_too() -> None:
    empty = labelled().split(1)[0]
    empty = Batch.of(
        tuple(x[:0] for x in empty.inputs), empty.targets[:0], widths=(LENGTHS[:0], None, None), ignore=-100
    )
    assert (len(empty), empty.tokens, empty.padding, empty.split(2)) == (0, 0, 0.0, [])
    assert empty.blank().tokens == 1


def test_moving_a_batch_keeps_everything() -> None:
    batch = labelled()
    moved = batch.to("cpu")
    assert all(torch.equal(a, b) for a, b in zip(moved.inputs, batch.inputs, strict=True))
    assert torch.equal(moved.targets, batch.targets)
    assert (moved.index, moved.ignore, moved.tokens, moved.widths) == (4, -100, 2, batch.widths)
