from __future__ import annotations

from fixtures_decoding import random_sources

from headwise.decoding.options import Request, RequiredPhrase, SearchOptions
from headwise.decoding.source_batches import Sources, batches, output_limit, shares


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


def test_a_search_starts_from_padded_ids_and_their_lengths() -> None:
    sources = Sources.of([1, 0], [[5, 6], [7]], None, SearchOptions())
    ids, lengths = sources.inputs
    assert ids.tolist() == [[7, 3, 0], [5, 6, 3]]
    assert lengths.tolist() == [2, 3]
    assert (sources.indices, len(sources)) == ((1, 0), 2)
    assert sources.prompt.tolist() == [2, 2]  # begin of sentence


def test_the_longest_output_leaves_room_for_what_is_asked() -> None:
    options = SearchOptions(max_extra=10)
    assert output_limit([5] * 4, Request(), options) == 14
    assert output_limit([5] * 4, Request(prefix=(5,) * 6), options) == 16
    assert output_limit([5] * 4, Request(phrases=(RequiredPhrase(((5, 6), (7,))),)), options) == 16
    assert output_limit([5] * 4, Request(), options, longest=12) == 12


def test_a_few_groups_are_cut_so_that_every_worker_has_work() -> None:
    assert shares([[0, 1, 2, 3, 4, 5, 6, 7]], workers=2) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert shares([[0, 1, 2]], workers=2) == [[0, 1, 2]]  # a step on fewer takes hardly less time
    many = [[number] for number in range(8)]
    assert shares(many, workers=2) == many
    assert shares([[0, 1, 2, 3, 4, 5, 6, 7]], workers=1) == [[0, 1, 2, 3, 4, 5, 6, 7]]
