"""Span corruption: exact counts, a draw that is a function of seed, epoch and sentence, and nothing that is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from small_stores import WORDS, store_of

from headwise.data.cursor import Cursor
from headwise.data.spans import Corruption, SpanBatches, restored, split_spans
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import BOS, EOS

SENTINELS = tuple(range(999, 899, -1))


def some_texts(count: int, seed: int = 1, longest: int = 60) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(10, 800, rng.integers(2, longest)).tolist() for _ in range(count)]


def corrupted(texts: list[list[int]], epoch: int = 0, **settings: float) -> list[tuple[list[int], list[int]]]:
    rule = Corruption(SENTINELS, **{"seed": 3, **settings})  # type: ignore[arg-type]
    places = np.cumsum([0, *map(len, texts[:-1])])
    source, target = rule.corrupt(Ragged.of(texts), places, epoch)
    return list(zip(source.sentences(), target.sentences(), strict=True))


@pytest.mark.parametrize(("share", "mean"), [(0.15, 3.0), (0.5, 2.0), (0.9, 1.0), (0.01, 10.0)])
def test_source_and_target_together_are_the_text(share: float, mean: float) -> None:
    texts = some_texts(300)
    for text, (source, target) in zip(texts, corrupted(texts, share=share, mean=mean), strict=True):
        assert restored(source, target, SENTINELS) == text
        assert source[0] == text[0]  # what comes first is seen
        used = [token for token in source if token in SENTINELS]
        assert used == list(SENTINELS[: len(used)]) == [token for token in target if token in SENTINELS]


def test_the_counts_are_those_of_the_paper() -> None:
    texts = some_texts(300)
    for text, (source, target) in zip(texts, corrupted(texts), strict=True):
        hidden = min(max(round(0.15 * len(text)), 1), len(text) - 1)
        spans = max(round(hidden / 3), 1)
        assert (len(source), len(target)) == (len(text) - hidden + spans, hidden + spans)
        assert all(split_spans(target, SENTINELS).values())  # no span is empty


def test_of_512_tokens_77_are_hidden_in_26_spans_of_three_on_average() -> None:
    texts = [list(range(10, 522)) for _ in range(50)]
    lengths: Counter[int] = Counter()
    for _, target in corrupted(texts):
        spans = split_spans(target, SENTINELS)
        assert (len(spans), sum(map(len, spans.values()))) == (26, 77)
        lengths.update(map(len, spans.values()))
    assert min(lengths) == 1
    assert max(lengths) > 6  # not all alike


def test_a_single_span_is_anywhere_but_at_the_beginning() -> None:
    drawn = corrupted([list(range(10, 20))] * 2000, share=0.2)
    places = Counter(source.index(999) for source, _ in drawn)
    assert sorted(places) == list(range(1, 9))
    assert all(200 < count < 300 for count in places.values())


def test_all_divisions_have_equal_chances() -> None:
    """Of four hidden tokens in two spans the first one has one, two or three."""
    drawn = corrupted([list(range(10, 18))] * 3000, share=0.5, mean=2.0)
    first = Counter(len(split_spans(target, SENTINELS)[999]) for _, target in drawn)
    assert sorted(first) == [1, 2, 3]
    assert all(900 < count < 1100 for count in first.values())


def test_the_draw_depends_on_seed_epoch_and_sentence_and_on_nothing_else() -> None:
    texts = some_texts(40, longest=80)
    together = corrupted(texts)
    rule, places = Corruption(SENTINELS, seed=3), np.cumsum([0, *map(len, texts[:-1])])
    for number in (0, 7, 39):
        source, target = rule.corrupt(Ragged.of([texts[number]]), places[number : number + 1], 0)
        assert (source.sentences()[0], target.sentences()[0]) == together[number]  # alone as in a batch
    assert corrupted(texts) == together
    assert corrupted(texts, epoch=1) != together
    assert corrupted(texts, seed=4) != together


def test_a_text_of_two_tokens_has_one_gap_and_many_spans_need_as_many_sentinels() -> None:
    assert corrupted([[10, 11]]) == [([10, 999], [999, 11])]
    few = Corruption(SENTINELS[:2], share=0.5, mean=1.0)
    text = Ragged.of([list(range(10, 40))])
    (source,), (target,) = (side.sentences() for side in few.corrupt(text, np.array([0]), 0))
    assert restored(source, target, SENTINELS) == list(range(10, 40))
    assert len(split_spans(target, SENTINELS)) == 2


def test_batches_are_pairs_that_can_be_made_in_any_order(tmp_path: Path) -> None:
    lines = [" ".join(WORDS[n % 14] for n in range(start, start + 2 + start % 20)) for start in range(60)] + ["dog"]
    store = store_of(tmp_path, text=lines)
    rule = Corruption(tuple(range(500, 400, -1)), seed=1)
    batches = SpanBatches(store, 120, rule)
    seen = []
    for index in range(batches.count(2)):
        batch = batches.make(Cursor(2, index))
        source, target, lengths = batch.inputs
        assert source.shape[0] * max(source.shape[1], target.shape[1]) <= 120
        for row, line in enumerate(batch.lines.tolist()):
            ids = source[row, : lengths[row] - 1].tolist()
            wanted = [token for token in batch.targets[row].tolist() if token not in (0, EOS)]
            stored = store.rows("text", np.array([line - 1])).tokens.tolist()
            assert restored(ids, wanted, rule.sentinels) == stored
            assert target[row, 0] == BOS
            seen.append(line)
    assert sorted(seen) == list(range(1, 61))  # a line of one token has no room for a gap
    again = SpanBatches(store, 120, rule).make(Cursor(2, 1))
    assert again.targets.tolist() == batches.make(Cursor(2, 1)).targets.tolist()
    halves = [SpanBatches(store, 120, rule, rank=rank, world=2).make(Cursor(2, 1)).lines.tolist() for rank in (0, 1)]
    assert halves[0] + halves[1] == again.lines.tolist()
    fixed = [SpanBatches(store, 120, rule, shuffle=False).make(Cursor(epoch, 0)).targets.tolist() for epoch in (0, 5)]
    assert fixed[0] == fixed[1]
