"""Computes perplexity from a language model's log-probabilities, with a signature that makes it comparable.

Two perplexities can be compared only if they are per token of the same vocabulary, per word or per character, and over
the same text. So each one carries a signature that names all of this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from headwise.errors import DataError


@dataclass(frozen=True)
class Perplexity:
    """The perplexity of one text. `nats` is the sum of -log p over all `tokens`."""

    nats: float
    tokens: int
    words: int
    characters: int
    signature: str
    unknown: int = 0  # tokens that stand for text which the vocabulary does not have

    @property
    def value(self) -> float:
        """exp of the mean of -log p per token."""
        return _exponential(self.nats / self.tokens)

    @property
    def per_word(self) -> float:
        """The same per word between spaces, each line end counted as a word.

        Comparable between vocabularies if no token is unknown: an unknown token is predicted without being spelled.
        """
        return _exponential(self.nats / self.words)

    @property
    def bits_per_character(self) -> float:
        """The mean of -log2 p per character, each line end counted; comparable like `per_word`."""
        return self.nats / math.log(2) / self.characters


@dataclass(frozen=True)
class Window:
    """Tokens `start` to `end` (excluded) are read together; those from `scored` on count towards the score."""

    start: int
    scored: int
    end: int


def windows(length: int, context: int, stride: int) -> Iterator[Window]:
    """Cuts a text of `length` tokens into windows so that each token but the first is scored exactly once.

    The first token has no context and is not scored (it is the begin of sentence). After the first window each scored
    token has at least context - stride tokens before it: a smaller stride gives lower perplexity and takes longer.
    """
    if not 1 <= stride <= context:
        raise DataError(f"the stride must be between 1 and {context} (the context), not {stride}")
    scored = 1
    while scored < length:
        end = min(length, scored + (context if scored == 1 else stride))
        yield Window(max(0, end - 1 - context), scored, end)
        scored = end


def from_sums(
    nats: float, *, tokens: int, unknown: int, text: tuple[int, int], tokenizer: str, context: int, stride: int
) -> Perplexity:
    """Builds the perplexity of a scored text; `text` is its words and characters, both with one per line end."""
    if tokens < 1:
        raise DataError("there is nothing to score: the text has no tokens")
    words, characters = text
    signature = (
        f"tok:{tokenizer}|tokens:{tokens}|unk:{unknown}|words:{words}|chars:{characters}|eol:counted|"
        f"context:{context}|stride:{stride}|log:e"
    )
    return Perplexity(nats, tokens, words, characters, signature, unknown)


def _exponential(mean: float) -> float:
    return math.exp(mean) if mean < 700 else math.inf
