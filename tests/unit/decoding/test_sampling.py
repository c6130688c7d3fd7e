from __future__ import annotations

import numpy as np
import pytest
import torch
from fixtures_decoding import random_model, random_sources

from headwise.decoding.options import Request, RequiredPhrase, Sampling, SearchOptions
from headwise.decoding.sampling import Sampler, draw, filtered, penalise_repetition, row_key, uniform
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import UsageError

LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0, -torch.inf]])


def kept(**settings: float) -> list[int]:
    probabilities, tokens = filtered(LOGITS, Sampling(**settings))  # type: ignore[arg-type]
    places = (probabilities[0] > 0).nonzero().squeeze(1)
    return sorted((places if tokens is None else tokens[0, places]).tolist())


def test_each_filter_keeps_what_it_says() -> None:
    shares = LOGITS.softmax(dim=-1)[0].tolist()
    assert kept() == [0, 1, 2, 3]
    assert kept(top_k=2) == [0, 1]
    assert kept(top_k=50) == [0, 1, 2, 3]
    assert kept(top_p=shares[0] - 0.01) == [0]
    assert kept(top_p=shares[0] + 0.01) == [0, 1]
    assert kept(min_p=0.2) == [0, 1]  # e^-1 = 0.37 of the first, e^-2 = 0.14
    assert kept(top_k=3, top_p=0.999, min_p=0.1) == [0, 1, 2]


def test_draws_follow_the_probabilities() -> None:
    keys = np.array([row_key(1, [4, 5], sample) for sample in range(20_000)], dtype=np.uint64)
    logits = torch.tensor([0.5, 0.3, 0.2, 0.0]).log().expand(20_000, 4)
    tokens = Sampler(Sampling(), keys)(logits, torch.arange(20_000), 0, None)
    shares = torch.bincount(tokens, minlength=4) / 20_000
    assert shares.tolist() == pytest.approx([0.5, 0.3, 0.2, 0.0], abs=0.015)


def test_numbers_are_even_and_differ_between_rows_and_steps() -> None:
    keys = np.array([row_key(0, [], sample) for sample in range(10_000)], dtype=np.uint64)
    first, second = uniform(keys, 0), uniform(keys, 1)
    for numbers in (first, second):
        assert 0.0 <= float(numbers.min()) < float(numbers.max()) < 1.0
        assert float(numbers.mean()) == pytest.approx(0.5, abs=0.02)
    assert abs(float(torch.corrcoef(torch.stack((first, second)))[0, 1])) < 0.05


def test_tokens_without_probability_are_never_drawn() -> None:
    probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]]).expand(4, 5)
    numbers = torch.tensor([0.0, 0.4999999, 0.5, 1 - 2.0**-53], dtype=torch.float64)
    assert draw(probabilities, numbers).tolist() == [1, 1, 3, 3]


def test_a_temperature_of_zero_and_a_top_k_of_one_are_greedy_search() -> None:
    engine, sources = TorchEngine(random_model(3)), random_sources(30, seed=2)
    greedy = [h.tokens for (h,) in engine.search(sources, SearchOptions(beam=1, max_extra=5))]
    for sampling in (Sampling(temperature=0.0), Sampling(top_k=1)):
        drawn = engine.search(sources, SearchOptions(sample=sampling, max_extra=5))
        assert [h.tokens for (h,) in drawn] == greedy


def test_the_repetition_penalty_makes_said_tokens_less_likely_whatever_their_sign() -> None:
    logits = torch.tensor([[2.0, -2.0, 1.0]])
    assert penalise_repetition(logits, torch.tensor([[0, 1, 1]]), 2.0).tolist() == [[1.0, -4.0, 1.0]]


def test_log_probabilities_of_samples_are_the_models_not_the_filters() -> None:
    engine, sources = TorchEngine(random_model(3)), random_sources(10, seed=2)
    found = engine.search(sources, SearchOptions(sample=Sampling(temperature=2.0, top_k=3), max_extra=3))
    for (h,), log_probs in zip(found, engine.score(sources, [h.tokens for (h,) in found]), strict=True):
        assert h.log_probs == pytest.approx(log_probs[: len(h.log_probs)], abs=1e-4)


def test_required_phrases_cannot_be_sampled() -> None:
    with pytest.raises(UsageError, match="sampling"):
        TorchEngine(random_model(3)).search(
            [[5]], SearchOptions(sample=Sampling()), [Request(phrases=(RequiredPhrase(((7,),)),))]
        )


@pytest.mark.parametrize("classes", [1, 60, 128, 1500])
def test_a_draw_by_blocks_is_the_place_where_the_running_sum_passes(classes: int) -> None:
    chance = torch.Generator().manual_seed(6)
    probabilities = torch.rand(200, classes, generator=chance).pow(8)
    probabilities[:, ::3] = 0.0  # a place of no size is never drawn
    probabilities[:, -1] = 0.3
    numbers = torch.rand(200, generator=chance, dtype=torch.float64)
    running = probabilities.double().cumsum(dim=-1)
    expected = torch.searchsorted(running, numbers[:, None] * running[:, -1:], right=True).squeeze(1)
    found = draw(probabilities, numbers)
    assert torch.equal(found, expected.clamp(max=classes - 1))
    assert bool((probabilities.gather(1, found[:, None]) > 0).all())


@pytest.mark.parametrize("sharpness", [0.1, 4.0])
def test_top_p_of_a_large_vocabulary_draws_as_from_all_tokens_sorted(sharpness: float) -> None:
    chance = torch.Generator().manual_seed(7)
    logits = torch.randn(64, 3000, generator=chance) * sharpness  # flat: sorted after all; sharp: the likeliest do
    settings = Sampling(top_p=0.8, min_p=0.001, seed=1)
    keys = np.array([row_key(1, [5], number) for number in range(64)], dtype=np.uint64)
    for step in range(5):
        probabilities, tokens = filtered(logits, settings)
        assert tokens is not None
        expected = tokens.gather(1, draw(probabilities, uniform(keys, step))[:, None]).squeeze(1)
        assert torch.equal(Sampler(settings, keys)(logits, torch.arange(64), step, None), expected)


def test_logits_that_are_nan_are_one_line_and_not_an_index_error() -> None:
    from headwise.errors import WorkFailed

    sampler = Sampler(Sampling(seed=1), np.array([1], dtype=np.uint64))
    with pytest.raises(WorkFailed, match="probabilities are NaN"):
        sampler(torch.full((1, 5), float("nan")), [0], 0, None)
