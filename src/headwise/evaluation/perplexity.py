"""Perplexity: the sums of a language model's log-probabilities, and the convention that makes the figure comparable.

Two perplexities can be compared only if they divide by the same count over the same text: tokens of one vocabulary,
words, or characters. So each figure carries a signature that names all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from headwise.errors import DataError


@dataclass(frozen=True)
class Perplexity:
    """Of one text. `nats` is the sum of -log p over all `tokens`."""

    nats: float
    tokens: int
    words: int
    characters: int
    signature: str

    @property
    def value(self) -> float:
        """exp of the mean over tokens."""
        return _exponential(self.nats / self.tokens)

    @property
    def per_word(self) -> float:
        """The same sum over words between spaces, line ends counted as words: comparable between vocabularies."""
        return _exponential(self.nats / self.words)

    @property
    def bits_per_character(self) -> float:
        """The same sum in bits over characters, line ends counted: comparable between vocabularies."""
        return self.nats / math.log(2) / self.characters


@dataclass(frozen=True)
class Window:
    """Tokens start…end are read together; those from `scored` on count. Positions in the text, end excluded."""

    start: int
    scored: int
    end: int


def windows(length: int, context: int, stride: int) -> Iterator[Window]:
    """Cuts a text of `length` tokens so that each token after the first counts once, with up to `context` before it.

    The first token has nothing before it and is not scored (it is the begin of sentence). After the first window each
    scored token has at least context - stride tokens before it: a smaller stride scores better and takes longer.
    """
    if not 1 <= stride <= context:
        raise DataError(f"the stride must be 1…{context} (the context), not {stride}")
    scored = 1
    while scored < length:
        end = min(length, scored + (context if scored == 1 else stride))
        yield Window(max(0, end - 1 - context), scored, end)
        scored = end


def from_sums(
    nats: float, *, tokens: int, unknown: int, text: tuple[int, int], tokenizer: str, context: int, stride: int
) -> Perplexity:
    """The figures of a scored text; `text` is its words and characters, both with one for each line end."""
    if tokens < 1:
        raise DataError("there is nothing to score: the text has no tokens")
    words, characters = text
    signature = (
        f"tok:{tokenizer}|tokens:{tokens}|unk:{unknown}|words:{words}|chars:{characters}|eol:counted|"
        f"context:{context}|stride:{stride}|log:e"
    )
    return Perplexity(nats, tokens, words, characters, signature)


def _exponential(mean: float) -> float:
    return math.exp(mean) if mean < 700 else math.inf
