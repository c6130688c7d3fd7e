from __future__ import annotations

import pytest
from fixtures_decoding import random_model, random_sources

from headwise.decoding.options import Phrase, Request, SearchOptions
from headwise.decoding.scoring import score_targets
from headwise.decoding.source_batches import Sources, batches, output_limit
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import UsageError


def test_every_sentence_is_in_one_batch_within_both_bounds_and_with_its_like() -> None:
    lengths = [len(source) for source in random_sources(500, seed=1, longest=40)]
    options = SearchOptions(batch_sentences=16, batch_tokens=200)
    groups = list(batches(lengths, options))
    assert sorted(place for group in groups for place in group) == list(range(500))
    for group in groups:
        assert len(group) <= 16
        assert len(group) == 1 or len(group) * (max(lengths[place] for place in group) + 1) <= 200
    widths = [lengths[place] for group in groups for place in group]
    assert widths == sorted(widths, reverse=True)


def test_a_sentence_longer_than_the_bound_is_a_batch_by_itself() -> None:
    assert list(batches([3, 900, 4], SearchOptions(batch_tokens=100))) == [[1], [2, 0]]


def test_lengths_are_given_only_where_something_is_padded() -> None:
    options = SearchOptions()
    assert Sources.of([0, 1], [[5, 6], [7, 8]], None, options).lengths is None
    assert Sources.of([0, 1], [[5, 6], [7]], None, options).lengths.tolist() == [3, 2]  # type: ignore[union-attr]


def test_the_longest_output_leaves_room_for_what_is_asked() -> None:
    options = SearchOptions(max_extra=10)
    assert output_limit([5] * 4, Request(), options) == 14
    assert output_limit([5] * 4, Request(prefix=(5,) * 6), options) == 16
    assert output_limit([5] * 4, Request(phrases=(Phrase(((5, 6), (7,))),)), options) == 16
    assert output_limit([5] * 4, Request(), options, longest=12) == 12


def test_a_targets_log_probability_does_not_depend_on_the_targets_around_it() -> None:
    model = random_model(3)
    sources, targets = random_sources(60, seed=2), random_sources(60, seed=3)
    together = TorchEngine(model).score(sources, targets)
    for place in range(0, 60, 7):
        (alone,) = score_targets(model, [sources[place]], [targets[place]])
        assert len(alone) == len(targets[place]) + 1
        assert together[place] == pytest.approx(alone, abs=1e-4)


def test_an_empty_target_is_its_end_of_sentence_alone() -> None:
    ((only,),) = TorchEngine(random_model(3)).score([[5, 6]], [[]])
    assert only < 0


def test_as_many_targets_as_sources_are_needed() -> None:
    with pytest.raises(UsageError, match="1 sources but 2 targets"):
        TorchEngine(random_model(3)).score([[5]], [[5], [6]])
