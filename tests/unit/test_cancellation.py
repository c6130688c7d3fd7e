"""Every kind of long work asks often enough whether it is still wanted, and ends when it is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_decoding import random_model, random_sources

from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import load_model
from headwise.cancellation import Cancelled, cancellable, check_cancelled
from headwise.decoding.options import Request, RequiredPhrase, Sampling, SearchOptions
from headwise.decoding.scoring import score_targets
from headwise.decoding.torch_engine import TorchEngine
from headwise.nn.favor import favor_weights
from headwise.tasks.classify import TASK
from headwise.workflows.generate import open_generator
from headwise.workflows.translate import open_translator

LONG = random_sources(4, seed=1, longest=40)
STEPS = 12


def checks(work: Callable[[], Any]) -> int:
    """How often the work asks if nobody stops it."""
    count = 0

    def check() -> None:
        nonlocal count
        count += 1

    with cancellable(check):
        work()
    return count


def stopped_at(work: Callable[[], Any], number: int) -> int:
    """Stops the work when it asks for the n-th time; returns how often it asked in all."""
    count = 0

    def check() -> None:
        nonlocal count
        count += 1
        if count >= number:
            raise Cancelled

    with cancellable(check), pytest.raises(Cancelled):
        work()
    return count


def test_nothing_happens_outside_of_the_block() -> None:
    check_cancelled()
    with pytest.raises(Cancelled), cancellable(_raise):
        check_cancelled()
    check_cancelled()


def _raise() -> None:
    raise Cancelled


@cache
def engine() -> TorchEngine:
    return TorchEngine(random_model(1))


SEARCHES: dict[str, Callable[[], Any]] = {
    "greedy": lambda: engine().search(LONG, SearchOptions(beam=1)),
    "beam": lambda: engine().search(LONG, SearchOptions(beam=4)),
    "sampling": lambda: engine().search(LONG, SearchOptions(sample=Sampling(), n_best=2)),
    "required phrases": lambda: engine().search(
        LONG, SearchOptions(beam=2), [Request(phrases=(RequiredPhrase(((10, 11),)),)) for _ in LONG]
    ),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_on_torch_asks_at_every_step(kind: str) -> None:
    search = SEARCHES[kind]
    longest = max(len(hypotheses[0].tokens) for hypotheses in search())
    assert checks(search) >= longest
    assert stopped_at(search, STEPS) == STEPS


def test_batches_in_other_threads_are_stopped_too() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        many = random_sources(200, seed=2)
        search = lambda: engine().search(many, SearchOptions(beam=2, batch_sentences=20))  # noqa: E731
        assert stopped_at(search, STEPS) <= STEPS + 10  # each of ten batches asks once more at most
        assert checks(search) > 100
    finally:
        torch.set_num_threads(before)


def test_scoring_asks_for_every_batch() -> None:
    options = SearchOptions(batch_sentences=2)
    assert checks(lambda: score_targets(random_model(1), LONG, LONG, options)) == len(LONG) // 2


def test_the_fast_engine_asks_for_every_batch_and_begins_none_afterwards(word_model: Path) -> None:
    opened = open_translator(word_model, engine="ctranslate2")
    texts = ["red dog"] * 200
    batches = checks(lambda: opened.translate(texts, beam=4))
    assert batches >= 200 * 4 / 48
    assert stopped_at(lambda: opened.translate(texts, beam=4), 3) == 3


@pytest.mark.parametrize(("name", "at_least"), [("torch", 300), ("ctranslate2", 3)])
def test_a_language_model_asks_for_every_token_or_stretch(language_model: Path, name: str, at_least: int) -> None:
    opened = open_generator(language_model, engine=name)
    write = lambda: opened.generate("the ", max_tokens=300, temperature=0.0)  # noqa: E731
    assert checks(write) >= at_least
    assert stopped_at(write, 3) == 3


def test_a_page_of_attention_asks_for_every_layer(word_model: Path) -> None:
    from headwise.look.page import page

    look = open_translator(word_model, engine="torch").look("red dog")
    assert checks(lambda: page(look, look.panels(), "attention")) == sum(map(len, look.attention.values()))


def test_a_pass_through_a_loaded_network_asks_before_every_layer(language_model: Path) -> None:
    network = load_model(open_bundle(language_model))
    layers = int(network.architecture["layers"])
    read = lambda: network.advance(network.start(None, 1), torch.ones(1, 30, dtype=torch.long))  # type: ignore[operator]  # noqa: E731
    assert checks(read) == layers
    assert stopped_at(read, layers) == layers


def test_the_fast_encoder_asks_for_every_batch_and_begins_none_afterwards(classifier_model: Path) -> None:
    opened = TASK.open(open_bundle(classifier_model), engine="ctranslate2")
    texts = opened.encode(["red dog one two three four five six"] * 600)
    classify = lambda: opened.classify_encoded(texts)  # noqa: E731
    assert checks(classify) >= sum(map(len, texts)) / 1024
    assert stopped_at(classify, 3) == 3


def test_weights_of_random_features_ask_for_every_row() -> None:
    query, projection = torch.rand(2, 9, 4), torch.rand(4, 8)
    assert checks(lambda: favor_weights(query, query, projection, causal=True)) == 9
