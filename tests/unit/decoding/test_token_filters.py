from __future__ import annotations

import pytest
import torch
from fixtures_decoding import random_model, random_sources

from headwise.decoding.options import Request, SearchOptions
from headwise.decoding.token_filters import forbid_repeats
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import UsageError
from headwise.text.tokenizer import EOS

SOURCES = random_sources(40, seed=1)


@pytest.fixture(scope="module")
def engine() -> TorchEngine:
    return TorchEngine(random_model(3))


@pytest.mark.parametrize("beam", [1, 4])
def test_special_tokens_never_come_even_if_the_model_loves_them(beam: int) -> None:
    model = random_model(4)
    with torch.no_grad():
        model.output.weight[:3] *= 50
    for (found,) in TorchEngine(model).search(SOURCES, SearchOptions(beam=beam, max_extra=3)):
        assert min(found.tokens, default=EOS) >= EOS


@pytest.mark.parametrize("beam", [1, 4])
def test_suppressed_tokens_never_come(engine: TorchEngine, beam: int) -> None:
    free = engine.search(SOURCES, SearchOptions(beam=beam, max_extra=3))
    common = max(range(4, 60), key=[token for (found,) in free for token in found.tokens].count)
    held = engine.search(SOURCES, SearchOptions(beam=beam, max_extra=3, suppress=(common,)))
    assert any(common in found.tokens for (found,) in free)
    assert not any(common in found.tokens for (found,) in held)


@pytest.mark.parametrize("beam", [1, 4])
def test_outputs_have_the_least_and_at_most_the_longest_length(engine: TorchEngine, beam: int) -> None:
    found = engine.search(SOURCES, SearchOptions(beam=beam, min_length=6, max_extra=5))
    for source, (hypothesis,) in zip(SOURCES, found, strict=True):
        length = len(hypothesis.log_probs)
        assert length <= len(source) + 5
        assert hypothesis.stopped == "loop" or length >= 6
        assert hypothesis.stopped != "length" or length == len(source) + 5


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_run_of_n_tokens_occurs_twice(engine: TorchEngine, beam: int, n: int) -> None:
    for (found,) in engine.search(SOURCES, SearchOptions(beam=beam, max_extra=10, no_repeat_ngram=n)):
        runs = [found.tokens[i : i + n] for i in range(len(found.tokens) - n + 1)]
        assert len(set(runs)) == len(runs)


def test_only_tokens_that_repeat_a_run_are_forbidden() -> None:
    logits = torch.zeros(2, 12)
    forbid_repeats(logits, torch.tensor([[5, 6, 7, 5, 6], [5, 6, 7, 8, 9]]), 3)
    assert (logits == -torch.inf).nonzero().tolist() == [[0, 7]]


@pytest.mark.parametrize("beam", [1, 4])
def test_every_output_begins_with_its_own_prefix(engine: TorchEngine, beam: int) -> None:
    requests = [Request(prefix=tuple(range(10, 10 + place % 5))) for place in range(40)]
    options = SearchOptions(beam=beam, n_best=beam, max_extra=8, suppress=(11,))
    for request, found in zip(requests, engine.search(SOURCES, options, requests), strict=True):
        for hypothesis in found:
            assert hypothesis.tokens[: len(request.prefix)] == request.prefix
            assert min(hypothesis.log_probs) > -1000


@pytest.mark.parametrize(
    ("options", "requests"),
    [
        (SearchOptions(suppress=(EOS,)), None),
        (SearchOptions(suppress=(600,)), None),
        (SearchOptions(), [Request(prefix=(1,))]),
        (SearchOptions(), [Request(prefix=(600,))]),
    ],
)
def test_tokens_that_cannot_be_forced_or_suppressed_are_one_clear_line(
    engine: TorchEngine, options: SearchOptions, requests: list[Request] | None
) -> None:
    with pytest.raises(UsageError, match=r"^token \d+ cannot [^\n]*$"):
        engine.search([[5, 6]], options, requests)


def test_a_search_leaves_a_model_in_training_as_it_was(engine: TorchEngine) -> None:
    engine.model.train()
    engine.search([[5, 6]], SearchOptions(max_extra=2))
    assert engine.model.training
    engine.model.eval()


def test_learned_positions_bound_the_output() -> None:
    engine = TorchEngine(random_model(5, positions="learned", max_length=12))
    for (found,) in engine.search([[5, 6, 7]] * 3, SearchOptions(beam=2, max_extra=50)):
        assert len(found.log_probs) <= 12
