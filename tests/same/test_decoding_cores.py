"""Batches side by side on several cores give what one after the other gives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fixtures_decoding import random_model, random_sources

from headwise.decoding.generator import Generator
from headwise.decoding.options import Sampling, SearchOptions
from headwise.decoding.source_batches import batches, shares
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import UsageError
from headwise.workflows.load import load

WAYS = {
    "greedy": SearchOptions(beam=1, max_extra=8, batch_sentences=16),
    "beam": SearchOptions(beam=4, n_best=2, max_extra=4, batch_sentences=16),
    "sampling": SearchOptions(sample=Sampling(seed=5, top_k=20), n_best=2, max_extra=4, batch_sentences=16),
}


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sentences", [300, 20])  # many batches, and two that are cut into shares
def test_the_number_of_cores_changes_no_output(way: str, sentences: int) -> None:
    engine, sources = TorchEngine(random_model(3), frozen=True), random_sources(sentences, seed=8)
    torch.set_num_threads(1)
    expected = engine.search(sources, WAYS[way])
    torch.set_num_threads(3)
    found = engine.search(sources, WAYS[way])
    assert [[h.tokens for h in each] for each in found] == [[h.tokens for h in each] for each in expected]


def test_a_search_leaves_the_threads_of_torch_as_they_were() -> None:
    engine, sources = TorchEngine(random_model(3)), random_sources(100, seed=8)
    torch.set_num_threads(2)
    seen: list[int] = []
    for some in (sources, sources[:1]):
        engine.search(some, WAYS["greedy"])
        later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        later.start()
        later.join()
        assert torch.get_num_threads() == 2
    assert seen == [2, 2]


def test_a_mistake_in_one_of_many_batches_is_reported_as_in_a_single_one() -> None:
    torch.set_num_threads(2)
    with pytest.raises(UsageError, match="cannot be suppressed"):
        TorchEngine(random_model(3)).search(random_sources(100, seed=8), replace(WAYS["greedy"], suppress=(999,)))


def test_shares_hold_every_sentence_once_and_keep_all_workers_busy() -> None:
    lengths = [len(source) for source in random_sources(50, seed=1)]
    for most in (50, 20, 1):
        groups = list(batches(lengths, SearchOptions(batch_sentences=most)))
        for workers in (1, 2, 4):
            cut = shares(groups, workers)
            assert sorted(place for group in cut for place in group) == list(range(50))
            assert len(cut) >= workers
            assert all(cut)
    assert shares([[0, 1, 2]], 2) == [[0, 1, 2]]  # too few to be worth it


def test_an_engine_sees_weights_that_change_between_its_searches() -> None:
    sources, model = random_sources(5, seed=2), random_model(4)
    engine = TorchEngine(model)
    before = [h.score for (h,) in engine.search(sources, WAYS["greedy"])]
    for parameter in model.decoder.parameters():
        parameter.data.mul_(0.5)
    after = [h.score for (h,) in engine.search(sources, WAYS["greedy"])]
    assert after != before
    assert after == [h.score for (h,) in TorchEngine(model).search(sources, WAYS["greedy"])]


def test_samples_on_several_cores_are_those_of_one_and_a_stop_ends_each_by_itself(language_model: Path) -> None:
    generator = load(language_model)
    assert isinstance(generator, Generator)

    def written(threads: int, stop: str = "\0") -> list[tuple[str, str]]:
        torch.set_num_threads(threads)
        texts = generator.generate("the dog", samples=13, max_tokens=40, seed=3, top_k=20, stop=stop)
        assert torch.get_num_threads() == threads
        return [(text.text, text.stopped) for text in texts]

    stop = written(1)[0][0][12:14]
    alone = written(1, stop)
    assert written(3, stop) == alone
    assert {stopped for _, stopped in alone} == {"stop", "length"}
