"""The result of a search. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Stopped = Literal["eos", "length", "loop"]
# Which scores an engine returns, since they cost time: none, one per sentence, or also one per token.
Scores = Literal["none", "sentences", "tokens"]


class Hypothesis(NamedTuple):
    """One output: `tokens` without begin and end of sentence."""

    tokens: tuple[int, ...]
    score: (
        float  # sum of log-probabilities over the length penalty, which hypotheses are ranked by; NaN if not requested
    )
    log_probs: tuple[float, ...]  # of each token, and of the end of sentence if it was reached
    stopped: Stopped = "eos"  # reached the end of sentence, the length limit, or was caught in a loop

    @classmethod
    def of(cls, tokens: Sequence[int], log_probs: Sequence[float], stopped: Stopped, alpha: float) -> Hypothesis:
        score = sum(log_probs) / length_penalty(len(log_probs), alpha)
        return cls(tuple(tokens), score, tuple(log_probs), stopped)

    def mean_log_prob(self, alpha: float) -> float:
        """Returns the mean per token, end of sentence included, from the score, as some engines give no `log_probs`."""
        length = len(self.tokens) + (self.stopped == "eos")
        return self.score * length_penalty(length, alpha) / length if length else 0.0


def length_penalty(length: int, alpha: float) -> float:
    """Computes ((5 + length) / 6) ** alpha of Wu et al. 2016, equation 14, which the paper uses (section 6.1).

    Scores are sums of log-probabilities divided by it. `length` includes the end of sentence.
    """
    return float(((5.0 + length) / 6.0) ** alpha)


def best(hypotheses: Iterable[Hypothesis], count: int) -> list[Hypothesis]:
    """Returns the `count` best without duplicates, best first; those caught in a loop come after all others."""
    distinct: dict[tuple[int, ...], Hypothesis] = {}
    for hypothesis in sorted(hypotheses, key=lambda h: (h.stopped == "loop", -h.score)):
        distinct.setdefault(hypothesis.tokens, hypothesis)
    return list(distinct.values())[:count]
