from __future__ import annotations

import random
from dataclasses import replace

import pytest
from fixtures_decoding import random_model, random_sources

from headwise.decoding.options import Edges, Request, RequiredPhrase, SearchOptions
from headwise.decoding.requirements import Requirements
from headwise.decoding.torch_engine import TorchEngine

A, B = RequiredPhrase(((10, 11, 12),)), RequiredPhrase(((20,),))
# 30 begins inside of a word, 31 ends a word; (31,) is a word of its own.
EDGES = Edges(continues=frozenset({30}), unfinished=frozenset({31, 10}))


def test_what_is_needed_counts_down_as_a_phrase_is_said_and_up_when_it_breaks_off() -> None:
    required = Requirements(Request(phrases=(A, B)))
    needed = [required.needed(tokens) for tokens in ([], [10], [10, 11], [10, 11, 12], [10, 11, 5], [20, 10, 11, 12])]
    assert needed == [4, 3, 2, 1, 4, 0]


def test_the_next_tokens_begin_a_phrase_or_go_on_with_one() -> None:
    required = Requirements(Request(phrases=(A, B)))
    assert required.next_tokens([]) == {10, 20}
    assert required.next_tokens([5, 10]) == {10, 11, 20}
    assert required.next_tokens([20, 10, 11, 12]) == set()


def test_a_phrase_listed_twice_must_come_twice() -> None:
    required = Requirements(Request(phrases=(B, B)))
    assert [required.needed(tokens) for tokens in ([20], [20, 5, 20])] == [1, 0]


def test_ordered_phrases_count_only_one_after_the_other() -> None:
    opened, closed = RequiredPhrase(((20,),), ordered=True), RequiredPhrase(((21, 22),), ordered=True)
    required = Requirements(Request(phrases=(opened, B, closed)))
    assert required.next_tokens([]) == {20}
    assert required.next_tokens([20]) == {20, 21}
    assert [required.needed(tokens) for tokens in ([21, 22], [20, 20, 21], [21, 22, 20, 20, 21, 22])] == [4, 1, 0]


def test_a_word_that_goes_on_is_another_word() -> None:
    required = Requirements(Request(phrases=(RequiredPhrase(((31,),)),), edges=EDGES))
    assert [required.needed(tokens) for tokens in ([31], [31, 30], [31, 5], [31, 30, 31])] == [0, 1, 0, 0]


def test_a_spelling_inside_of_a_word_does_not_count() -> None:
    required = Requirements(
        Request(
            phrases=(
                RequiredPhrase(
                    ((5, 6), (30, 6)),
                ),
            ),
            edges=EDGES,
        )
    )
    assert [required.needed(tokens) for tokens in ([30, 6], [7, 30, 6], [31, 30, 6], [31, 5, 6])] == [0, 0, 2, 0]


def test_added_tokens_are_judged_as_if_the_whole_were_looked_at() -> None:
    chance = random.Random(1)
    required = Requirements(Request(phrases=(A, B, RequiredPhrase(((31,), (30, 31)))), edges=EDGES))
    for _ in range(300):
        said = [chance.choice([5, 10, 11, 12, 20, 30, 31]) for _ in range(chance.randint(0, 8))]
        follow = [5, 10, 11, 12, 20, 30, 31]
        assert required.after_each(said, follow) == [required.needed([*said, token]) for token in follow]


def test_what_is_said_step_by_step_is_judged_like_the_whole() -> None:
    """A search asks for ever longer sequences, of which only the end is scanned again."""
    chance = random.Random(2)
    phrases = (A, B, B, RequiredPhrase(((31,), (30, 31)), whole=False), RequiredPhrase(((12, 20),), ordered=True))
    request = Request(phrases=phrases, edges=EDGES)
    for _ in range(50):
        stepwise, said = Requirements(request), list[int]()
        for _ in range(25):
            said = [*said, chance.choice([5, 10, 11, 12, 20, 30, 31])]
            assert stepwise.needed(said) == Requirements(request).needed(said)
            assert stepwise.next_tokens(said) == Requirements(request).next_tokens(said)


def contains(tokens: tuple[int, ...], phrase: tuple[int, ...]) -> int:
    return sum(tokens[i : i + len(phrase)] == phrase for i in range(len(tokens) - len(phrase) + 1))


@pytest.mark.parametrize("beam", [1, 4])
def test_required_phrases_are_in_every_output_even_of_a_model_that_would_never_say_them(beam: int) -> None:
    chance = random.Random(beam)
    sources = random_sources(60, seed=2, longest=6)
    phrases = [
        tuple(tuple(chance.choices(range(4, 60), k=chance.randint(1, 4))) for _ in range(chance.randint(0, 4)))
        for _ in sources
    ]
    requests = [Request(phrases=tuple(RequiredPhrase((tokens,)) for tokens in wanted)) for wanted in phrases]
    options = SearchOptions(beam=beam, n_best=beam, max_extra=2)
    found = TorchEngine(random_model(3)).search(sources, options, requests)
    for wanted, hypotheses in zip(phrases, found, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            assert all(contains(hypothesis.tokens, phrase) >= wanted.count(phrase) for phrase in wanted)


def test_an_unlikely_phrase_is_not_drowned_in_other_words_by_the_length_penalty() -> None:
    sources = random_sources(40, seed=2, longest=6)
    requests = [Request(phrases=(RequiredPhrase(((10, 11, 12, 13),)),))] * 40
    engine, options = TorchEngine(random_model(3)), SearchOptions(beam=4, n_best=3, max_extra=30)
    likeliest, longer = (
        engine.search(sources, replace(options, length_penalty=alpha), requests) for alpha in (0.0, 2.0)
    )
    for one, other in zip(likeliest, longer, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]
        sums = [sum(h.log_probs) for h in one]
        assert sums == sorted(sums, reverse=True)
        assert [h.score for h in other] == [
            pytest.approx(total / ((5 + len(h.log_probs)) / 6) ** 2) for total, h in zip(sums, other, strict=True)
        ]


def test_prefix_suppression_and_no_repeats_do_not_keep_a_phrase_out() -> None:
    request = Request(prefix=(40, 41, 42), phrases=(RequiredPhrase(((7, 8),)), RequiredPhrase(((7, 8),))))
    options = SearchOptions(beam=2, max_extra=3, suppress=(7,), no_repeat_ngram=2)
    ((found,),) = TorchEngine(random_model(3)).search([[5, 6]], options, [request])
    assert found.tokens[:3] == (40, 41, 42)
    assert contains(found.tokens, (7, 8)) == 2


def test_constrained_outputs_are_the_same_alone_and_in_a_batch() -> None:
    sources = random_sources(20, seed=5, longest=8)
    requests = [Request(phrases=(A, B) if place % 2 else (B,)) for place in range(20)]
    engine, options = TorchEngine(random_model(3)), SearchOptions(beam=3, max_extra=4)
    together = engine.search(sources, options, requests)
    for place in range(20):
        ((alone,),) = engine.search([sources[place]], options, [requests[place]])
        assert together[place][0].tokens == alone.tokens


def test_phrases_that_the_model_would_say_anyway_change_nothing() -> None:
    engine, options = TorchEngine(random_model(3)), SearchOptions(beam=5, max_extra=8)
    sources = random_sources(20, seed=6)
    free = [found for (found,) in engine.search(sources, options)]
    requests = [Request(phrases=(RequiredPhrase((h.tokens[1:3],)),) if len(h.tokens) > 2 else ()) for h in free]
    held = engine.search(sources, options, requests)
    same = sum(h.tokens == found.tokens for h, (found,) in zip(free, held, strict=True) if h.stopped == "eos")
    assert same >= 0.8 * sum(h.stopped == "eos" for h in free)
