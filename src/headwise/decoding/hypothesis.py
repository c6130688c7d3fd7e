"""What a search gives back. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Stopped = Literal["eos", "length", "loop"]
# What an engine returns besides the text, since scores cost time: nothing, a score per sentence, or one per token too.
Scores = Literal["none", "sentences", "tokens"]


class Hypothesis(NamedTuple):
    """One output: `tokens` without begin and end of sentence."""

    tokens: tuple[int, ...]
    score: float  # sum of log-probabilities over the length penalty: what hypotheses are ranked by; NaN: not asked for
    log_probs: tuple[float, ...]  # of each token, and of the end of sentence if it was reached
    stopped: Stopped = "eos"  # reached the end of sentence, the longest length, or was caught in a cycle

    @classmethod
    def of(cls, tokens: Sequence[int], log_probs: Sequence[float], stopped: Stopped, alpha: float) -> Hypothesis:
        score = sum(log_probs) / length_penalty(len(log_probs), alpha)
        return cls(tuple(tokens), score, tuple(log_probs), stopped)

    def mean_log_prob(self, alpha: float) -> float:
        """Per token, the end of sentence included; computed from the score, since some engines give no `log_probs`."""
        length = len(self.tokens) + (self.stopped == "eos")
        return self.score * length_penalty(length, alpha) / length if length else 0.0


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6) ** alpha of Wu et al. 2016, equation 14, which the paper decodes with (section 6.1).

    A sum of log-probabilities is divided by it. `length` counts the end of sentence.
    """
    return float(((5.0 + length) / 6.0) ** alpha)


def best(hypotheses: Iterable[Hypothesis], count: int) -> list[Hypothesis]:
    """The `count` best, each once, best first; one that was caught in a cycle stands after all that were not."""
    distinct: dict[tuple[int, ...], Hypothesis] = {}
    for hypothesis in sorted(hypotheses, key=lambda h: (h.stopped == "loop", -h.score)):
        distinct.setdefault(hypothesis.tokens, hypothesis)
    return list(distinct.values())[:count]
