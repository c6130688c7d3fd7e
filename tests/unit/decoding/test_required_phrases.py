from __future__ import annotations

import random
from dataclasses import replace

import pytest
from fixtures_decoding import random_model, random_sources

from headwise.decoding.options import Request, RequiredPhrase, SearchOptions
from headwise.decoding.required_phrases import _allocate, _Option
from headwise.decoding.torch_engine import TorchEngine
from headwise.text.tokenizer import EOS

A, B = RequiredPhrase(((10, 11, 12),)), RequiredPhrase(((20,),))


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


def test_the_slots_of_a_beam_go_in_turn_to_hypotheses_that_lack_more_and_less() -> None:
    complete = [_Option(-9.0, 0, token, -1.0, needed=0) for token in (EOS, 5)]
    lacking = [_Option(-1.0 - token, 0, token, -1.0, needed=2) for token in range(6, 10)]
    kept = _allocate([*complete, *lacking], beam=3)
    assert {option.token for option in kept} == {EOS, 5, 6, 7}
    assert kept[0].token == EOS
