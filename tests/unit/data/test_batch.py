"""What a model gets: padded tensors with begin and end of sentence, true counts, and micro-batches of the same."""

from __future__ import annotations

import numpy as np
import torch

from headwise.data.batch import Batch, LanguageBatch
from headwise.text.ragged import Ragged


def example() -> Batch:
    source = Ragged.of([[10, 11, 12], [13], [], [14, 15]])
    target = Ragged.of([[20], [21, 22], [23, 24, 25], []])
    return Batch.of(source, target, np.array([7, 3, 9, 1]), index=5)


def test_sides_carry_begin_and_end_where_the_model_needs_them() -> None:
    batch = example()
    assert batch.source.tolist() == [[10, 11, 12, 3], [13, 3, 0, 0], [3, 0, 0, 0], [14, 15, 3, 0]]
    assert batch.target_input.tolist() == [[2, 20, 0, 0], [2, 21, 22, 0], [2, 23, 24, 25], [2, 0, 0, 0]]
    assert batch.target_output.tolist() == [[20, 3, 0, 0], [21, 22, 3, 0], [23, 24, 25, 3], [3, 0, 0, 0]]
    assert batch.source.dtype == batch.target_input.dtype == torch.int64
    assert batch.source_lengths.tolist() == [4, 2, 1, 3]
    assert batch.target_lengths.tolist() == [2, 3, 4, 1]


def test_the_decoder_reads_just_what_it_said_before() -> None:
    batch = example()
    for read, said, length in zip(batch.target_input, batch.target_output, batch.target_lengths, strict=True):
        assert read[1:length].tolist() == said[: length - 1].tolist()


def test_counts_are_of_real_tokens() -> None:
    batch = example()
    assert (len(batch), batch.source_tokens, batch.tokens) == (4, 10, 10)
    assert batch.padding == (1 - 10 / 16, 1 - 10 / 16)
    assert batch.lines.tolist() == [7, 3, 9, 1]


def test_micro_batches_are_the_same_sentences_no_wider_than_needed() -> None:
    batch = example()
    for parts in (1, 2, 3, 4, 9):
        pieces = batch.split(parts)
        assert len(pieces) == min(parts, 4)
        assert sum(piece.tokens for piece in pieces) == batch.tokens
        assert np.concatenate([piece.lines for piece in pieces]).tolist() == batch.lines.tolist()
        for piece in pieces:
            assert piece.source.shape[1] == piece.source_lengths.max()
            assert piece.target_output.shape[1] == piece.target_lengths.max()
    assert batch.split(2)[1].source.tolist() == [[3, 0, 0], [14, 15, 3]]


def test_an_empty_share_is_a_batch_without_sentences() -> None:
    empty = Batch.of(Ragged.of([]), Ragged.of([]))
    assert (len(empty), empty.tokens, empty.padding) == (0, 0, (0.0, 0.0))
    assert empty.split(2) == []


def test_moving_a_batch_keeps_everything() -> None:
    moved = example().to("cpu")
    assert torch.equal(moved.source, example().source)
    assert moved.index == 5


def test_a_language_batch_says_the_next_token_and_counts_no_padding() -> None:
    batch = LanguageBatch.of(np.array([[3, 10, 11, 3], [12, 13, 0, 0]]), np.array([1, 2]), index=2)
    assert batch.ids.tolist() == [[3, 10, 11], [12, 13, 0]]
    assert batch.targets.tolist() == [[10, 11, 3], [13, 0, 0]]
    assert batch.tokens == 4
    assert [piece.tokens for piece in batch.split(2)] == [3, 1]
    assert torch.equal(batch.to("cpu").ids, batch.ids)
