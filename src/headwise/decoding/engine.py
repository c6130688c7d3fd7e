"""What does the searching: an engine takes token ids and gives hypotheses. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from headwise.decoding.hypothesis import Hypothesis, Scores
from headwise.decoding.options import Request, SearchOptions


class Engine(Protocol):
    """Sentences are token ids without begin and end of sentence; answers come in the order of the sentences."""

    name: str
    scores: Scores  # what it tells beside the text

    @property
    def leaves_a_core(self) -> bool:
        """Whether a search beside that of a single sentence takes no time from it."""
        ...

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        """At most `options.n_best` hypotheses a sentence, best first. `requests`: one a sentence, or none at all.

        What an engine cannot do is a UsageError.
        """
        ...

    def answers(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The same: each sentence's place and hypotheses, in any order, as soon as the engine can tell them.

        An engine that `leaves_a_core` begins when it is asked, not when the answers are read.
        """
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """Log-probabilities of given targets: of each token, then of the end of sentence."""
        ...
