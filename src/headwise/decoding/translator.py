"""Translates text with any engine. Does not import torch itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, overload

from headwise.bundle.directory import Bundle
from headwise.decoding.confidence import confidence
from headwise.decoding.engine import Engine
from headwise.decoding.glossary import PhraseMaker, Term, glossary_terms, protected_spans
from headwise.decoding.hypothesis import Hypothesis, Stopped
from headwise.decoding.options import Request, Sampling, SearchOptions
from headwise.decoding.sentences import Sentence, cut_to_fit, join_sentences, split_sentences
from headwise.decoding.term_replacement import with_terms
from headwise.errors import DataError, UsageError
from headwise.text.tokenizer import TokenizerPair

# A longer source is translated in pieces: models have rarely seen longer ones, and the cost of attention is quadratic.
LONGEST_SOURCE = 500  # tokens


class Translation(NamedTuple):
    """A translated text and what is known about it."""

    text: str
    score: float  # log-probability over the length penalty, summed over sentences; NaN if not requested
    tokens: tuple[str, ...]  # readable pieces
    ids: tuple[int, ...]
    log_probs: tuple[float, ...]  # of each token, and of each end of sentence that was reached
    confidence: float  # in [0, 1], see headwise.decoding.confidence; NaN if not requested
    stopped: Stopped = "eos"  # "length" and "loop" mean that the translation was cut off
    alternatives: tuple[Translation, ...] = ()  # the next best, best first
    sentences: tuple[Translation, ...] = ()  # of a text that was split: the translation of each sentence

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        more = f", {len(self.alternatives)} alternatives" if self.alternatives else ""
        cut = "" if self.stopped == "eos" else f", stopped={self.stopped!r}"
        return f"Translation({self.text!r}, score={self.score:.2f}, confidence={self.confidence:.2f}{cut}{more})"


EMPTY = Translation("", 0.0, (), (), (), 1.0)


class Translator:
    """Translates with a model directory's tokenizers and defaults, and an engine."""

    def __init__(self, bundle: Bundle, tokenizers: TokenizerPair, engine: Engine, prefix: str = "") -> None:
        """`prefix` is written before every source: it tells a model of several tasks which one is meant."""
        self.bundle, self.tokenizers, self.engine, self.prefix = bundle, tokenizers, engine, prefix
        self._scored = engine.scores != "none"
        self._last: tuple[tuple[Any, ...], SearchOptions] = (), SearchOptions.of_model(bundle.decoding)
        self.calibration: Mapping[str, Any] | None = bundle.card.get("calibration")
        longest = bundle.settings.longest
        longest = LONGEST_SOURCE if longest is None else min(LONGEST_SOURCE, longest - 1)
        # Without the prefix, which every piece of a text has.
        self.longest_source = max(1, longest - (len(tokenizers.source.encode(prefix)) if prefix else 0))

    def __repr__(self) -> str:
        languages = " → ".join(self.bundle.languages) or "languages unknown"
        return f"{type(self).__name__}({str(self.bundle.path)!r}, {languages}, engine={self.engine.name!r})"

    @overload
    def translate(self, texts: str, **options: Any) -> Translation: ...

    @overload
    def translate(self, texts: Sequence[str], **options: Any) -> list[Translation]: ...

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        glossary: Mapping[str, str] | None = None,
        protect: bool = False,
        prefix: str | Sequence[str | None] | None = None,
        sample: Sampling | None = None,
        split_sentences: bool = True,
        source_prefix: str | Sequence[str] | None = None,
        **options: Any,
    ) -> Translation | list[Translation]:
        """Translates one text, or a list to a list in the same order; a blank text gives an empty translation.

        `glossary` maps source terms to terms that the translation must use; `protect` keeps placeholders, tags,
        addresses and numbers unchanged; `prefix` is text that the translation begins with, one for all or one per text;
        `source_prefix` stands before the text, likewise, instead of the translator's own; further options are those of
        SearchOptions. Each sentence is translated by itself, unless `split_sentences` is
        False; a text that is too long for the model is always split.
        """
        if isinstance(texts, str):
            (only,) = self.translate(
                [texts], beam=beam, n_best=n_best, glossary=glossary, protect=protect, prefix=prefix, sample=sample,
                split_sentences=split_sentences, source_prefix=source_prefix, **options,
            )  # fmt: skip
            return only
        prefixes = _one_each(prefix, len(texts))
        fronts = _one_each(self.prefix if source_prefix is None else source_prefix, len(texts))
        search = self.options(beam=beam, n_best=n_best, sample=sample, **options)
        pieces = [self.pieces(text.strip() if isinstance(text, str) else text, split_sentences) for text in texts]
        flat = [piece.text for sentences in pieces for piece in sentences if piece.text]
        starts: list[str | None] = [None] * len(flat)
        if prefix is not None:
            starts = [
                start if number == 0 else None
                for sentences, start in zip(pieces, prefixes, strict=True)
                for number, _ in enumerate(piece for piece in sentences if piece.text)
            ]
        before = [
            front or ""
            for sentences, front in zip(pieces, fronts, strict=True)
            for _ in (piece for piece in sentences if piece.text)
        ]
        answers = iter(self._translate_pieces(flat, before, starts, search, glossary or {}, protect))
        return [self.joined(sentences, [next(answers) for s in sentences if s.text]) for sentences in pieces]

    def options(self, **changes: Any) -> SearchOptions:
        """Combines the model's defaults with changes; None means no change."""
        asked, (last, options) = tuple(changes.items()), self._last
        if asked != last:  # most callers repeat the same options
            try:
                options = SearchOptions.of_model(self.bundle.decoding, **changes)
            except TypeError as error:
                raise UsageError(f"unknown option: {error}") from error
            self._last = asked, options
        return options

    # ---- text to sentences and back

    def pieces(self, text: str, split: bool, longest: int | None = None) -> list[Sentence]:
        """Splits a text into pieces that fit the model: the text itself, or its sentences. Empty pieces are spacing.

        A piece has at most `longest` tokens, and never more than the model reads at once.
        """
        longest = min(longest or self.longest_source, self.longest_source)
        if not isinstance(text, str):
            raise DataError(f"only text can be translated, not {type(text).__name__}")
        whole = text.strip()
        if not whole:
            return []
        if not split and self._fits(whole, longest):
            return [Sentence(whole, "")]
        cut = []
        for sentence in self._sentences(text if split else whole):
            if self._fits(sentence.text, longest):
                cut.append(sentence)
                continue
            parts = cut_to_fit(sentence.text, self.length, longest)
            cut += [*parts[:-1], Sentence(parts[-1].text, sentence.after)]
        return cut

    def _sentences(self, text: str) -> list[Sentence]:
        return split_sentences(text, self.bundle.languages[0] if self.bundle.languages else None)

    def _fits(self, text: str, longest: int) -> bool:
        # A token has at least one byte and a character at most four, so most texts need not be tokenized here.
        most = len(text) if text.isascii() else 4 * len(text)
        return most < longest or self.length(text) <= longest

    def length(self, text: str) -> int:
        """Counts the tokens of a source, its end of sentence included."""
        return len(self.tokenizers.source.encode(text)) + 1

    def joined(self, sentences: list[Sentence], answers: list[list[Translation]]) -> Translation:
        """Joins the translations of a text's sentences: the i-th alternative consists of their i-th best."""
        if not answers:
            return EMPTY
        if len(sentences) == 1:
            first, *others = answers[0]
            return first._replace(alternatives=tuple(others)) if others else first
        language = self.bundle.languages[1] if len(self.bundle.languages) > 1 else None
        ranked = []
        for rank in range(max(len(answer) for answer in answers)):
            chosen = [answer[min(rank, len(answer) - 1)] for answer in answers]
            remaining = iter(chosen)
            texts = [next(remaining).text if sentence.text else "" for sentence in sentences]
            ranked.append(concatenated(join_sentences(texts, sentences, language), chosen))
        return ranked[0]._replace(alternatives=tuple(ranked[1:]))

    # ---- pieces to translations

    def _translate_pieces(
        self,
        texts: list[str],
        before: list[str],
        prefixes: list[str | None],
        options: SearchOptions,
        glossary: Mapping[str, str],
        protect: bool,
    ) -> list[list[Translation]]:
        if not texts:
            return []
        written = [front + text for front, text in zip(before, texts, strict=True)] if any(before) else texts
        sources = self.tokenizers.source.encode_batch(written)
        requests = None
        if glossary or protect or any(prefixes):
            requests = [self._request(*each, glossary, protect) for each in zip(before, texts, prefixes, strict=True)]
        found = self._search(sources, options, requests)
        return [self._translations(hypotheses, options.length_penalty) for hypotheses in found]

    def _search(
        self, sources: list[list[int]], options: SearchOptions, requests: list[Request] | None
    ) -> list[list[Hypothesis]]:
        """Searches without the terms of the glossary first, and puts them in place of what they translate.

        A sentence in which that is not possible is searched again, by a search that finds a place for them.
        """
        if requests is None or options.sample is not None:
            return self.engine.search(sources, options, requests)
        found = self.engine.search(sources, options, [_without_terms(request) for request in requests])
        asked = [i for i, request in enumerate(requests) if any(phrase.translates for phrase in request.phrases)]
        for place, hypotheses in zip(asked, self._replace(asked, sources, found, requests, options), strict=True):
            found[place] = hypotheses
        again = [place for place in asked if not found[place]]
        if again:
            more = self.engine.search([sources[i] for i in again], options, [requests[i] for i in again])
            for place, hypotheses in zip(again, more, strict=True):
                found[place] = hypotheses
        return found

    def _replace(
        self, places: list[int], sources: list[list[int]], found: list[list[Hypothesis]], requests: list[Request],
        options: SearchOptions,
    ) -> list[list[Hypothesis]]:  # fmt: skip
        """The hypotheses of each place with their terms; none where a term has no place in the best of them."""
        each = [(place, hypothesis) for place in places for hypothesis in found[place] if hypothesis.tokens]
        repeated = [sources[place] for place, _ in each]
        attention = self.engine.attention(repeated, [hypothesis.tokens for _, hypothesis in each]) if each else None
        if attention is None:
            return [[] for _ in places]
        new = [
            with_terms(hypothesis.tokens, requests[place], weights)
            for (place, hypothesis), weights in zip(each, attention, strict=True)
        ]
        fitting = [number for number, tokens in enumerate(new) if tokens is not None]
        scores = self.engine.score([repeated[n] for n in fitting], [new[n] or () for n in fitting]) if fitting else []
        made: dict[int, list[Hypothesis]] = {place: [] for place in places}
        for number, log_probs in zip(fitting, scores, strict=True):
            place, hypothesis = each[number]
            ended = log_probs if hypothesis.stopped == "eos" else log_probs[:-1]
            made[place].append(Hypothesis.of(new[number] or (), ended, hypothesis.stopped, options.length_penalty))
        return [made[place] for place in places]

    def _request(
        self, front: str, text: str, prefix: str | None, glossary: Mapping[str, str], protect: bool
    ) -> Request:
        required = glossary_terms(text, glossary) + (protected_spans(text) if protect else [])
        start = tuple(self.tokenizers.target.encode(prefix)) if prefix else ()
        if not required:
            return Request(prefix=start)
        phrases = (replace(self._phrases.phrase(term), translates=self._tokens(front, text, term)) for term in required)
        return Request(start, tuple(phrases), self._phrases.edges)

    def _tokens(self, front: str, text: str, term: Term) -> tuple[tuple[int, int], ...]:
        """The source tokens that a term translates."""
        count = self.tokenizers.source.encode
        return tuple(
            (len(count((front + text[:start]).rstrip())), len(count(front + text[:end]))) for start, end in term.spans
        )

    @cached_property
    def _phrases(self) -> PhraseMaker:
        return PhraseMaker(self.tokenizers.target)

    def _translations(self, hypotheses: list[Hypothesis], alpha: float) -> list[Translation]:
        """Decodes hypotheses to text; different tokenizations of the same text count as one translation."""
        if len(hypotheses) == 1:
            return [self._translation(hypotheses[0], alpha)]
        first: dict[str, Translation] = {}
        for hypothesis in hypotheses:
            translation = self._translation(hypothesis, alpha)
            first.setdefault(translation.text, translation)
        return list(first.values())

    def _translation(self, hypothesis: Hypothesis, alpha: float) -> Translation:
        return Translation(
            self.tokenizers.target.decode(hypothesis.tokens).strip(),
            hypothesis.score,
            tuple(self.tokenizers.target.pieces(hypothesis.tokens)),
            hypothesis.tokens,
            hypothesis.log_probs,
            confidence(hypothesis.mean_log_prob(alpha), self.calibration) if self._scored else math.nan,
            hypothesis.stopped,
        )


def _one_each(given: str | Sequence[str | None] | None, count: int) -> list[str | None]:
    found = [given] * count if given is None or isinstance(given, str) else list(given)
    if len(found) != count:
        raise UsageError(f"there are {count} texts but {len(found)} prefixes; give one per text")
    return found


def _without_terms(request: Request) -> Request:
    return replace(request, phrases=tuple(phrase for phrase in request.phrases if not phrase.translates))


def concatenated(text: str, parts: Sequence[Translation]) -> Translation:
    """Describes a text that consists of several translations: scores are summed, confidences averaged by length."""
    if not parts:
        return EMPTY._replace(text=text)
    weights = [len(part.log_probs) or 1 for part in parts]
    mean = sum(part.confidence * weight for part, weight in zip(parts, weights, strict=True)) / sum(weights)
    severity: tuple[Stopped, ...] = ("eos", "length", "loop")
    return Translation(
        text,
        sum(part.score for part in parts),
        tuple(token for part in parts for token in part.tokens),
        tuple(token for part in parts for token in part.ids),
        tuple(value for part in parts for value in part.log_probs),
        mean,
        max((part.stopped for part in parts), key=severity.index),
        sentences=tuple(parts),
    )
