"""The options of a search, and the additional requirements of single sentences. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwise.config.schema import WIDEST_BEAM, Decoding
from headwise.errors import UsageError

_COUNTS = "beam", "max_extra", "min_length", "n_best", "batch_sentences", "batch_tokens"  # at least 1 each
_DEFAULTS = Decoding.model_validate({})


@dataclass(frozen=True)
class Sampling:
    """Sample tokens at random instead of searching for the best. The filters apply in the order of the fields.

    What a sentence draws depends only on the seed, its own tokens and the number of the sample, so it gets the same
    text alone, in any batch and at any position in it.
    """

    repetition_penalty: float = 1.0  # divides positive logits of earlier tokens and multiplies negative ones
    temperature: float = 1.0  # logits are divided by it; 0 is greedy
    top_k: int = 0  # keep only the k most likely tokens; 0 keeps all
    top_p: float = 1.0  # keep only the most likely tokens whose probabilities add up to this
    min_p: float = 0.0  # keep only tokens with at least this fraction of the highest probability
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.repetition_penalty > 0, f"repetition_penalty must be above 0, not {self.repetition_penalty}")
        _check(self.temperature >= 0, f"temperature must be 0 or more, not {self.temperature}")
        _check(self.top_k >= 0, f"top_k must be 0 (all) or more, not {self.top_k}")
        _check(0 < self.top_p <= 1, f"top_p must be above 0 and at most 1, not {self.top_p}")
        _check(0 <= self.min_p <= 1, f"min_p must be between 0 and 1, not {self.min_p}")


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search. Lengths are in tokens, including the end of sentence."""

    beam: int = _DEFAULTS.beam
    length_penalty: float = _DEFAULTS.length_penalty
    max_extra: int = _DEFAULTS.max_extra  # longest output: source length plus this
    min_length: int = 1  # shortest output
    n_best: int = 1  # hypotheses per sentence; with `sample`, the number of samples
    no_repeat_ngram: int = 0  # no n-gram of this length occurs twice; 0 is off
    sample: Sampling | None = None
    suppress: tuple[
        int, ...
    ] = ()  # token ids that are never produced, in addition to padding, unknown and begin of sentence
    batch_sentences: int = 64  # most sentences decoded together
    batch_tokens: int = 4096  # most source tokens decoded together, padding included

    def __post_init__(self) -> None:
        if min(map(self.__dict__.__getitem__, _COUNTS)) < 1:
            name = next(name for name in _COUNTS if getattr(self, name) < 1)
            raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.beam > WIDEST_BEAM:
            raise UsageError(f"beam must be at most {WIDEST_BEAM}, not {self.beam}")
        if not self.length_penalty >= 0:
            raise UsageError(f"length_penalty must be 0 or more, not {self.length_penalty}")
        if self.no_repeat_ngram < 0:
            raise UsageError(f"no_repeat_ngram must be 0 (off) or more, not {self.no_repeat_ngram}")
        if self.sample is None and self.n_best > self.beam:
            raise UsageError(f"n_best ({self.n_best}) must not be more than beam ({self.beam})")

    @classmethod
    def of_model(cls, decoding: Mapping[str, Any], **changes: Any) -> SearchOptions:
        """Combines a model's own defaults (`bundle.decoding`) with the changes of a call; None means no change."""
        wanted = {key: value for key, value in changes.items() if value is not None}
        known = {key: decoding[key] for key in ("beam", "length_penalty", "max_extra") if key in decoding}
        merged = {**known, **wanted}
        if wanted.get("n_best", 1) > merged.get("beam", _DEFAULTS.beam) and "beam" not in wanted:
            merged["beam"] = wanted["n_best"]
        return cls(**merged)


@dataclass(frozen=True)
class RequiredPhrase:
    """A sequence of tokens that the output must contain. `spellings` are the alternatives, any of which will do.

    A spelling without a leading space (`Edges.continues`) does not count directly after another word, so at least one
    spelling must have one: it can occur anywhere.
    """

    spellings: tuple[tuple[int, ...], ...]
    whole: bool = True  # a whole word or number: must not be followed by a letter or digit
    ordered: bool = False  # counts only after all ordered phrases that precede it in the list
    translates: tuple[tuple[int, int], ...] = ()  # the tokens of the source, from and to, that it is to translate

    @property
    def cost(self) -> int:
        """The number of tokens of its longest spelling."""
        return max(map(len, self.spellings))


@dataclass(frozen=True)
class Edges:
    """Which tokens join with their neighbours to a word; needed to keep a required phrase a separate word."""

    continues: frozenset[int] = frozenset()  # begins with a letter or digit, with no space before it
    unfinished: frozenset[int] = frozenset()  # ends with a letter or digit


@dataclass(frozen=True)
class Request:
    """Requirements of one sentence, in addition to the options of the call."""

    prefix: tuple[int, ...] = ()  # the output begins with these tokens
    phrases: tuple[RequiredPhrase, ...] = ()  # the output contains each of these, as often as it is listed
    edges: Edges = Edges()


NO_REQUEST = Request()


def _check(fine: bool, problem: str) -> None:
    if not fine:
        raise UsageError(problem)
