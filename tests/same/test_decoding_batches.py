"""What a sentence becomes does not depend on the sentences around it: batched = single, in any order."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from fixtures_decoding import random_model, random_sources

from headwise.decoding.options import Request, Sampling, SearchOptions
from headwise.decoding.torch_engine import TorchEngine

WAYS = {
    "greedy": SearchOptions(beam=1, max_extra=8),
    "beam": SearchOptions(beam=4, n_best=2, max_extra=4),
    "beam without repeats": SearchOptions(beam=3, max_extra=3, no_repeat_ngram=2, min_length=4),
    "sampling": SearchOptions(sample=Sampling(seed=5, top_k=20, top_p=0.9), n_best=2, max_extra=4),
    "plain sampling": SearchOptions(sample=Sampling(seed=6, temperature=0.7, repetition_penalty=1.2), max_extra=4),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_thousand_sentences_give_the_same_tokens_in_batches_of_any_size_and_order(way: str) -> None:
    engine, options = TorchEngine(random_model(3)), WAYS[way]
    sources = random_sources(1000, seed=8)
    expected = engine.search(sources, options)
    order = random.Random(9).sample(range(1000), 1000)
    shuffled = engine.search([sources[i] for i in order], replace(options, batch_sentences=23))
    for place, found in zip(order, shuffled, strict=True):
        assert [h.tokens for h in found] == [h.tokens for h in expected[place]]
        assert [h.score for h in found] == pytest.approx([h.score for h in expected[place]], abs=1e-4)
        assert [h.stopped for h in found] == [h.stopped for h in expected[place]]
    for place in range(0, 1000, 40):
        (alone,) = engine.search([sources[place]], options)
        assert [h.tokens for h in alone] == [h.tokens for h in expected[place]]


def test_sentences_with_and_without_requests_do_not_disturb_each_other() -> None:
    engine, options = TorchEngine(random_model(10)), SearchOptions(beam=3, max_extra=5)
    sources = random_sources(40, seed=11)
    requests = [Request(prefix=(7, 8, 9)) if place % 3 == 0 else Request() for place in range(40)]
    mixed, free = engine.search(sources, options, requests), engine.search(sources, options)
    for place, (found,) in enumerate(mixed):
        if place % 3:
            assert found.tokens == free[place][0].tokens
        else:
            assert found.tokens[:3] == (7, 8, 9)


def test_equal_seeds_give_equal_samples_and_other_seeds_other_ones() -> None:
    engine, sources = TorchEngine(random_model(12, sharpness=0.5)), random_sources(20, seed=13)
    draws = [
        [found[0].tokens for found in engine.search(sources, SearchOptions(sample=Sampling(seed=seed), max_extra=5))]
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_the_samples_of_one_sentence_differ_from_each_other() -> None:
    engine = TorchEngine(random_model(12, sharpness=0.5))
    (found,) = engine.search([[5, 6, 7]], SearchOptions(sample=Sampling(), n_best=8, max_extra=5))
    assert len({h.tokens for h in found}) == len(found) > 1
