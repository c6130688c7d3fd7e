"""Engines take token ids and return hypotheses; and what of a search each engine can do. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol

from headwise.decoding.hypothesis import Hypothesis, Scores
from headwise.decoding.options import Request, SearchOptions


class Engine(Protocol):
    """Sentences are token ids without begin and end of sentence; answers come in the order of the sentences."""

    name: str
    scores: Scores  # what it returns besides the text

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        """At most `options.n_best` hypotheses per sentence, best first. `requests`: one per sentence, or None."""
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """Log-probabilities of given targets: of each token, then of the end of sentence."""
        ...


def beyond_ctranslate2(options: SearchOptions, requests: Sequence[Request] | None = None) -> str | None:
    """What is asked for that the ctranslate2 engine cannot do, in words; None: it can do all of it."""
    asked = {
        "sampling": options.sample is not None,
        "a minimum length": options.min_length > 1,
        "no_repeat_ngram": options.no_repeat_ngram > 0,
        "suppressed tokens": bool(options.suppress),
        "required phrases (glossary, protected spans)": any(request.phrases for request in requests or ()),
        "a forced prefix": any(request.prefix for request in requests or ()),
    }
    return next((name for name, wanted in asked.items() if wanted), None)


class AutoEngine:
    """The ctranslate2 engine for all that it can do, and the torch engine, opened when first needed, for the rest."""

    def __init__(self, fast: Engine, open_torch: Callable[[], Engine]) -> None:
        self.fast, self.name, self.scores = fast, fast.name, fast.scores
        self._open, self._lock = open_torch, Lock()
        self._torch: Engine | None = None

    @property
    def torch(self) -> Engine:
        with self._lock:
            if self._torch is None:
                self._torch = self._open()
            return self._torch

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        engine = self.torch if beyond_ctranslate2(options, requests) else self.fast
        return engine.search(sources, options, requests)

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        return self.fast.score(sources, targets)
