"""The interface of engines, from token ids to hypotheses, and the choice between them. Does not import torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from headwise.decoding.hypothesis import Hypothesis, Scores
from headwise.decoding.options import Request, SearchOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class Engine(Protocol):
    """Decodes sentences, given as token ids without begin and end of sentence; returns results in the same order."""

    name: str
    scores: Scores  # which scores it returns

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        """Finds at most `options.n_best` hypotheses per sentence, best first. `requests`: one per sentence, or None."""
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """Computes the log-probabilities of given targets: of each token, then of the end of sentence."""
        ...

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Floats] | None:
        """Computes the cross-attention of given targets, (T, S) each: the mean over the heads of the second-to-last
        layer. None if the model has none."""
        ...


def beyond_ctranslate2(options: SearchOptions, requests: Sequence[Request] | None = None) -> str | None:
    """Names the first requested feature that the ctranslate2 engine does not support; None if it supports them all."""
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
    """Uses the ctranslate2 engine for all that it supports, and the torch engine, opened on first use, for the rest."""

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

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Floats] | None:
        return self.fast.attention(sources, targets)
