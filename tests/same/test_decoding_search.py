"""Greedy, beam and exhaustive search agree where they must."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from fixtures_decoding import exhaustive, random_model, random_sources
from fixtures_models import english_sentences

from headwise.bundle.weights import open_model
from headwise.decoding.beam import beam_search
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Sources
from headwise.decoding.torch_engine import TorchEngine


@torch.inference_mode()
def test_a_beam_of_one_is_greedy_search() -> None:
    model, options = random_model(1), SearchOptions(beam=1, max_extra=20)
    sources = random_sources(300, seed=2)
    greedy = TorchEngine(model).search(sources, options)
    beamed = beam_search(model, Sources.of(range(300), sources, None, options), options)
    assert {h.stopped for (h,) in greedy} == {"eos", "length", "loop"}
    for (one,), (other,) in zip(greedy, beamed, strict=True):
        assert (one.tokens, one.stopped) == (other.tokens, other.stopped)
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_greedy_search_without_scores_says_the_same() -> None:
    model, sources = random_model(1), random_sources(300, seed=2)
    options = SearchOptions(beam=1, max_extra=20, no_repeat_ngram=3)
    scored, silent = (TorchEngine(model, scores=scores).search(sources, options) for scores in ("tokens", "none"))
    assert [(h.tokens, h.stopped) for (h,) in silent] == [(h.tokens, h.stopped) for (h,) in scored]
    assert all(math.isnan(h.score) and h.log_probs == () for (h,) in silent)


@pytest.mark.parametrize("part", range(4))
def test_a_beam_that_is_wide_enough_is_exhaustive_search(part: int) -> None:
    vocab, options = 8, SearchOptions(beam=90, n_best=5, max_extra=2, length_penalty=(0.0, 0.6, 1.0, 2.0)[part])
    for seed in range(50 * part, 50 * part + 50):
        model = random_model(seed, vocab=vocab, model_dim=16, decoder_layers=1, sharpness=1.5)
        source = [4 + seed % 4]
        (found,) = TorchEngine(model).search([source], options)
        best = exhaustive(model, source, vocab, limit=3, alpha=options.length_penalty)[:5]
        assert [h.tokens for h in found] == [tokens for _, tokens in best]
        assert [h.score for h in found] == pytest.approx([score for score, _ in best], abs=1e-4)


def test_beam_search_scores_at_least_as_high_as_greedy_search_on_99_of_100_sentences(word_model: Path) -> None:
    _, model, tokenizers = open_model(word_model)
    sources = tokenizers.source.encode_batch(english_sentences(500, seed=4, longest=16))  # it has learnt up to 12
    greedy, beamed = (TorchEngine(model).search(sources, SearchOptions(beam=beam)) for beam in (1, 5))
    # A loop is cut off, and what is left of it cannot be compared.
    scores = [(b[0].score, g[0].score) for b, g in zip(beamed, greedy, strict=True) if g[0].stopped != "loop"]
    assert len(scores) > 450
    assert sum(b >= g - 1e-5 for b, g in scores) >= 0.99 * len(scores)
    assert sum(b > g + 1e-5 for b, g in scores) > 5


def test_the_n_best_are_distinct_and_sorted() -> None:
    options = SearchOptions(beam=5, n_best=5, max_extra=6)
    for found in TorchEngine(random_model(3)).search(random_sources(300, seed=4), options):
        assert len({h.tokens for h in found}) == len(found) == 5
        ranks = [(h.stopped == "loop", -h.score) for h in found]
        assert ranks == sorted(ranks)


def test_scores_are_the_models_own_log_probabilities() -> None:
    engine, sources = TorchEngine(random_model(5)), random_sources(50, seed=6)
    for options in (SearchOptions(beam=1, max_extra=5), SearchOptions(beam=4, max_extra=5)):
        found = [h for (h,) in engine.search(sources, options)]
        again = engine.score(sources, [h.tokens for h in found])
        for hypothesis, log_probs in zip(found, again, strict=True):
            assert hypothesis.log_probs == pytest.approx(log_probs[: len(hypothesis.log_probs)], abs=1e-4)
            length = len(hypothesis.log_probs)
            assert hypothesis.score == pytest.approx(sum(hypothesis.log_probs) / ((5 + length) / 6) ** 0.6)
