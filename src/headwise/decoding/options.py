"""The options of a search, and what single sentences ask for beyond them. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwise.config.schema import Decoding
from headwise.errors import UsageError

_COUNTS = "beam", "max_extra", "min_length", "n_best", "batch_sentences", "batch_tokens"  # at least 1 each
_DEFAULTS = Decoding.model_validate({})


@dataclass(frozen=True)
class Sampling:
    """Sample tokens at random instead of searching for the best. The filters apply in the order of the fields.

    What a sentence draws depends on the seed, its own tokens and the number of the sample, so it gets the same text
    alone, in any batch and at any place in it.
    """

    repetition_penalty: float = 1.0  # tokens that came before: logits divided by it if positive, else multiplied
    temperature: float = 1.0  # logits are divided by it; 0 is greedy
    top_k: int = 0  # only the k likeliest tokens; 0 is all
    top_p: float = 1.0  # only the likeliest tokens that together have this share
    min_p: float = 0.0  # only tokens with at least this share of the likeliest one's
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.repetition_penalty > 0, f"repetition_penalty must be above 0, not {self.repetition_penalty}")
        _check(self.temperature >= 0, f"temperature must be 0 or more, not {self.temperature}")
        _check(self.top_k >= 0, f"top_k must be 0 (all) or more, not {self.top_k}")
        _check(0 < self.top_p <= 1, f"top_p must be above 0 and at most 1, not {self.top_p}")
        _check(0 <= self.min_p <= 1, f"min_p must be between 0 and 1, not {self.min_p}")


@dataclass(frozen=True)
class SearchOptions:
    """How a batch of sentences is searched. Lengths count tokens, the end of sentence included."""

    beam: int = _DEFAULTS.beam
    length_penalty: float = _DEFAULTS.length_penalty
    max_extra: int = _DEFAULTS.max_extra  # longest output: source length plus this
    min_length: int = 1  # no end of sentence before this many tokens, itself included
    n_best: int = 1  # hypotheses per sentence; with `sample`, the number of samples
    no_repeat_ngram: int = 0  # no n tokens in a row occur twice; 0 is off
    sample: Sampling | None = None
    suppress: tuple[int, ...] = ()  # token ids that never come, beside padding, unknown and begin of sentence
    batch_sentences: int = 64  # most sentences decoded together
    batch_tokens: int = 4096  # most source tokens decoded together, padding included

    def __post_init__(self) -> None:
        if min(map(self.__dict__.__getitem__, _COUNTS)) < 1:
            name = next(name for name in _COUNTS if getattr(self, name) < 1)
            raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not self.length_penalty >= 0:
            raise UsageError(f"length_penalty must be 0 or more, not {self.length_penalty}")
        if self.no_repeat_ngram < 0:
            raise UsageError(f"no_repeat_ngram must be 0 (off) or more, not {self.no_repeat_ngram}")
        if self.sample is None and self.n_best > self.beam:
            raise UsageError(f"n_best ({self.n_best}) must not be more than beam ({self.beam})")

    @classmethod
    def of_model(cls, decoding: Mapping[str, Any], **changes: Any) -> SearchOptions:
        """A model's own defaults (`bundle.decoding`), with the changes of a call over them; None is no change."""
        wanted = {key: value for key, value in changes.items() if value is not None}
        known = {key: decoding[key] for key in ("beam", "length_penalty", "max_extra") if key in decoding}
        merged = {**known, **wanted}
        if wanted.get("n_best", 1) > merged.get("beam", _DEFAULTS.beam) and "beam" not in wanted:
            merged["beam"] = wanted["n_best"]
        return cls(**merged)


@dataclass(frozen=True)
class RequiredPhrase:
    """A run of tokens that the output must contain. `spellings` are ways to write it, any of which will do.

    A spelling that begins inside of a word (`Edges.continues`) does not count right after another word, so at least one
    must not: it can stand anywhere.
    """

    spellings: tuple[tuple[int, ...], ...]
    whole: bool = True  # it is a word or number of its own: what follows must not go on with it
    ordered: bool = False  # it counts only after all phrases before it in the list that are ordered too

    @property
    def cost(self) -> int:
        """The most tokens that it can take."""
        return max(map(len, self.spellings))


@dataclass(frozen=True)
class Edges:
    """Which tokens touch their neighbours; needed to keep a required phrase a word of its own."""

    continues: frozenset[int] = frozenset()  # begins with a letter or digit, with no space before it
    unfinished: frozenset[int] = frozenset()  # ends with a letter or digit


@dataclass(frozen=True)
class Request:
    """What one sentence wants beyond the options of the call."""

    prefix: tuple[int, ...] = ()  # the output begins with these tokens
    phrases: tuple[RequiredPhrase, ...] = ()  # the output contains each of these, as often as it is listed
    edges: Edges = Edges()


NOTHING_MORE = Request()


def _check(fine: bool, problem: str) -> None:
    if not fine:
        raise UsageError(problem)
