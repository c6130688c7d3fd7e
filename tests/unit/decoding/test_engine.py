from __future__ import annotations

from collections.abc import Sequence

import pytest

from headwise.decoding.engine import AutoEngine, beyond_ctranslate2
from headwise.decoding.hypothesis import Hypothesis, Scores
from headwise.decoding.options import Request, RequiredPhrase, Sampling, SearchOptions

REQUIRING = Request(phrases=(RequiredPhrase(((5,),)),))
BEYOND = [
    (SearchOptions(sample=Sampling()), None, "sampling"),
    (SearchOptions(min_length=3), None, "a minimum length"),
    (SearchOptions(no_repeat_ngram=2), None, "no_repeat_ngram"),
    (SearchOptions(suppress=(7,)), None, "suppressed tokens"),
    (
        SearchOptions(),
        [Request(), Request(phrases=(RequiredPhrase(((5,),)),))],
        "required phrases (glossary, protected spans)",
    ),
    (SearchOptions(), [Request(prefix=(5,))], "a forced prefix"),
]


class Named:
    """An engine that answers with its own number."""

    scores: Scores = "tokens"

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        return [[Hypothesis((self.number,), 0.0, ())] for _ in sources]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        return [(float(self.number),) for _ in sources]


@pytest.mark.parametrize(("options", "requests", "reason"), BEYOND)
def test_what_ctranslate2_cannot_do_is_named(
    options: SearchOptions, requests: list[Request] | None, reason: str
) -> None:
    assert beyond_ctranslate2(options, requests) == reason


def test_plain_search_of_any_width_is_not_beyond_it() -> None:
    for options in (SearchOptions(beam=1), SearchOptions(beam=5, n_best=5, length_penalty=0.0), SearchOptions()):
        assert beyond_ctranslate2(options, [Request()]) is None
        assert beyond_ctranslate2(options) is None


def test_torch_is_opened_when_it_is_first_needed_and_once() -> None:
    opened: list[Named] = []

    def open_torch() -> Named:
        opened.append(Named("torch", 2))
        return opened[-1]

    engine = AutoEngine(Named("ctranslate2", 1), open_torch)
    assert engine.search([[5]], SearchOptions())[0][0].tokens == (1,)
    assert engine.score([[5]], [[6]]) == [(1.0,)]
    assert (engine.name, opened) == ("ctranslate2", [])
    for options, requests, _ in BEYOND:
        assert engine.search([[5]], options, requests)[0][0].tokens == (2,)
    assert engine.torch is opened[0]
    assert len(opened) == 1
