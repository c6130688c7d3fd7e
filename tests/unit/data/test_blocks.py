"""Language-model batches: every token is a target once, streams go on, blocks are shuffled, cursors are exact."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from small_stores import WORDS, sentences, words

from headwise.data.blocks import BlockBatches, StreamBatches, TokenStream, block_batch
from headwise.data.cursor import Cursor, walk
from headwise.data.store import Store

LINES = ["a big dog", "", "runs", "over the green hill and sees two", "", "", "birds", *sentences(40, 5)]


def whole() -> list[int]:
    return [token for line in LINES for token in [*words().encode(line), 3]]


@pytest.fixture
def store(text_store: Callable[[list[str]], Store]) -> Store:
    return text_store(LINES)


def test_the_stream_ends_each_line_and_can_be_read_from_anywhere(store: Store) -> None:
    stream, expected = TokenStream(store), whole()
    assert stream.length == len(expected)
    assert stream.read(-1, stream.length).tolist() == [3, *expected]
    for start in range(30):
        for stop in range(start + 1, 40):
            assert stream.read(start, stop).tolist() == expected[start:stop]


@pytest.mark.parametrize("width", [1, 4, 7, 1000])
@pytest.mark.parametrize("kind", [StreamBatches, BlockBatches])
def test_every_token_is_a_target_exactly_once(store: Store, kind: type, width: int) -> None:
    batches = kind(store, 28, width)
    for epoch in range(3):
        made = [batch for batch, _ in walk(batches, Cursor(epoch, 0), epoch + 1)]
        targets = np.concatenate([batch.targets.flatten().numpy() for batch in made])
        assert sorted(targets[targets != 0].tolist()) == sorted(whole())
        assert sum(batch.tokens for batch in made) == len(whole())


def test_streams_go_on_where_the_batch_before_ended(store: Store) -> None:
    made = [batch for batch, _ in walk(StreamBatches(store, 20, 5), epochs=1)]
    rows = np.concatenate([batch.targets.numpy() for batch in made], axis=1)  # stream by stream
    assert [token for token in rows.flatten().tolist() if token] == whole()
    for before, after in pairwise(made):
        going = after.targets[:, 0] != 0
        assert before.targets[going, -1].tolist() == after.inputs[0][going, 0].tolist()


def test_blocks_come_in_another_order_and_cut_elsewhere_in_each_epoch(store: Store) -> None:
    batches = BlockBatches(store, 40, 8, seed=1)
    epochs = [[batch.targets.tolist() for batch, _ in walk(batches, Cursor(epoch, 0), epoch + 1)] for epoch in (0, 1)]
    assert epochs[0] != epochs[1]
    again = BlockBatches(store, 40, 8, seed=1)
    assert [batch.targets.tolist() for batch, _ in walk(again, Cursor(1, 0), 2)] == epochs[1]
    still = BlockBatches(store, 40, 8, shuffle=False)
    assert [
        token for batch, _ in walk(still, epochs=1) for token in batch.targets.flatten().tolist() if token
    ] == whole()


@pytest.mark.parametrize("kind", [StreamBatches, BlockBatches])
def test_a_cursor_leads_to_the_same_batch(store: Store, kind: type) -> None:
    walked = list(walk(kind(store, 40, 8), epochs=2))
    for (_, cursor), (batch, _) in pairwise(walked):
        again, _ = next(walk(kind(store, 40, 8), cursor))
        assert again.inputs[0].tolist() == batch.inputs[0].tolist()
        assert again.targets.tolist() == batch.targets.tolist()


@pytest.mark.parametrize("kind", [StreamBatches, BlockBatches])
def test_ranks_share_the_rows_of_every_batch(store: Store, kind: type) -> None:
    alone, ranks = kind(store, 40, 8), [kind(store, 40, 8, rank=rank, world=2) for rank in range(2)]
    for index in range(alone.count(0)):
        shares = [rank.make(Cursor(0, index)).targets.tolist() for rank in ranks]
        assert sorted(shares[0] + shares[1]) == sorted(alone.make(Cursor(0, index)).targets.tolist())


def test_a_row_names_the_line_it_begins_in(store: Store) -> None:
    batch = BlockBatches(store, 1000, 3, shuffle=False).make(Cursor())
    assert batch.lines[:5].tolist() == [1, 1, 3, 4, 4]  # positions 0, 3 (the end of line 1), 6, 9, 12


def test_words_that_the_text_has_are_all_in_the_stream(store: Store) -> None:
    tokens = set(TokenStream(store).read(0, len(whole())).tolist())
    assert tokens == {3, *words().encode(" ".join(WORDS))}


def test_a_block_says_the_next_token_and_counts_no_padding() -> None:
    batch = block_batch(np.array([[3, 10, 11, 3], [12, 13, 0, 0]]), np.array([1, 2]), index=2)
    assert [tensor.tolist() for tensor in batch.inputs] == [[[3, 10, 11], [12, 13, 0]]]
    assert batch.targets.tolist() == [[10, 11, 3], [13, 0, 0]]
    assert (batch.tokens, batch.index) == (4, 2)
    assert [piece.tokens for piece in batch.split(2)] == [3, 1]
