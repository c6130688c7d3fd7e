"""The fast engine for CPUs: CTranslate2 on an exported model. It does plain search; it imports no torch.

Its beam search and the one in `beam.py` keep the same hypotheses and stop alike, but CTranslate2 ranks by
sum / length ** α, the paper by sum / ((5 + length) / 6) ** α. So it is asked for the whole beam, which is ranked here,
and of what has ended beyond that keeps what the paper's formula would keep too, nearly always.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import ctranslate2

from headwise.bundle.directory import read_json
from headwise.decoding.ctranslate2_workers import Turn, Workers
from headwise.decoding.hypothesis import PATIENCE, Hypothesis, Scores, best, length_penalty
from headwise.decoding.loops import LEAST_TOKENS, due, has_loop, kept_length, may_loop
from headwise.decoding.options import Request, SearchOptions
from headwise.errors import DataError, UsageError
from headwise.text.tokenizer import BOS, EOS, PAD, UNK, TokenizerPair

# More sentences in a batch, or more hypotheses by precision, make products with the weights no faster, and leave the
# cache.
_MOST_SENTENCES = 32
_MOST_ROWS = {"int8": 48, "float32": 80}

Ranked = list[tuple[list[str], float]]  # pieces and scores, best first
Attention = list[list[float]]  # a row a target token, a column a source token

_SCORE = itemgetter(1)


class CTranslate2Engine:
    """An `Engine`. For scores of tokens the output is read again; without any, greedy search leaves out the softmax."""

    name = "ctranslate2"

    def __init__(
        self, directory: Path, tokenizers: TokenizerPair, *, scores: Scores = "sentences", workers: int = 0
    ) -> None:
        self.scores = scores
        self._source = tokenizers.source.vocabulary
        self._target = tokenizers.target.vocabulary
        self._id_of = {piece: number for number, piece in enumerate(self._target)}.__getitem__
        self._end = self._source[EOS]
        export = read_json(directory / "export.json")
        self.longest = int(export["positions"])  # most tokens that there are positions for
        self._most_rows = _MOST_ROWS[export["precision"]]
        self._workers = Workers(ctranslate2.Translator, directory, workers)

    @property
    def leaves_a_core(self) -> bool:
        return self._workers.leave_a_core

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        found = dict(self.answers(sources, options, requests))
        return [found[place] for place in range(len(sources))]

    def answers(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        if requests:
            _check_requests(requests)
        self._check_lengths(sources)
        found = self._found(sources, options)
        return self._with_token_scores(sources, found) if self.scores == "tokens" else found

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        self._check_lengths(itertools.chain(sources, targets))
        texts, pieces = self._pieces(sources), [[self._target[number] for number in target] for target in targets]
        with self._workers.of(len(texts)) as translator:
            results = translator.score_batch(texts, pieces, max_batch_size=64, max_input_length=0)
        return [tuple(result.log_probs) for result in results]

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Attention]:
        """Cross-attention while given targets are read: the heads' mean, in the layer that the export names."""
        self._check_lengths(itertools.chain(sources, targets))
        pieces = [[self._target[number] for number in target] for target in targets]
        with self._workers.of(len(sources)) as translator:
            results = translator.translate_batch(
                self._pieces(sources),
                target_prefix=pieces,
                beam_size=1,
                max_batch_size=64,
                max_input_length=0,
                max_decoding_length=max(map(len, targets), default=0) + 1,
                return_attention=True,
            )
        return [
            [row[: len(source)] for row in result.attention[0][: len(target)]]
            for result, source, target in zip(results, sources, targets, strict=True)
        ]

    def _mend(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        limits: Sequence[int],
        found: list[list[Hypothesis]],
    ) -> None:
        """Whole beams with hypotheses that are too long, no text, or loops; made good in place."""
        self._keep_limits(sources, options, limits, found)
        found[:] = [[h for h in hypotheses if _is_text(h)] for hypotheses in found]
        self._fill_up(sources, options, limits, found)
        self._end_loops(sources, options, found)

    def _keep_limits(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        limits: Sequence[int],
        found: list[list[Hypothesis]],
    ) -> None:
        """A batch has one longest length. What went beyond a sentence's own is cut, or in a beam searched again."""
        again: dict[int, list[int]] = defaultdict(list)
        for index, hypotheses in enumerate(found):
            if any(_length(hypothesis) > limits[index] for hypothesis in hypotheses[: options.n_best]):
                again[limits[index]].append(index)
        if options.beam == 1 and again:
            self._cut(sources, options, found, again)
            return
        for limit, indices in again.items():
            answers = self._whole_beams([sources[index] for index in indices], options, limit)
            for index, hypotheses in zip(indices, answers, strict=True):
                found[index] = hypotheses

    def _cut(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        found: list[list[Hypothesis]],
        again: dict[int, list[int]],
    ) -> None:
        """Greedy search that is stopped earlier has said the beginning of the same."""
        shorter = {index: found[index][0].tokens[:limit] for limit, indices in again.items() for index in indices}
        scores = self.score([sources[index] for index in shorter], list(shorter.values()))
        for (index, tokens), log_probs in zip(shorter.items(), scores, strict=True):
            cut = Hypothesis.of(tokens, log_probs[: len(tokens)], "length", options.length_penalty)
            found[index] = [cut._replace(log_probs=())]

    def _fill_up(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        limits: Sequence[int],
        found: list[list[Hypothesis]],
    ) -> None:
        """Where padding, unknown or begin of sentence left too few hypotheses of words, these are forbidden.

        A trained model hardly ever says them. Probabilities without them are not the model's own, so scores are
        taken anew.
        """
        for index, hypotheses in enumerate(found):
            if len(hypotheses) >= options.n_best:
                continue
            source = sources[index]
            (answers,) = self._whole_beams([source], options, limits[index], forbidden=(PAD, UNK, BOS))
            scores = self.score([source] * len(answers), [answer.tokens for answer in answers])
            rescored = (
                Hypothesis.of(h.tokens, log_probs[: _length(h)], h.stopped, options.length_penalty)
                for h, log_probs in zip(answers, scores, strict=True)
            )
            hypotheses[:] = best((h._replace(log_probs=()) for h in rescored), options.beam)

    def _found(
        self, sources: Sequence[Sequence[int]], options: SearchOptions
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The `n_best` best of each sentence, best first."""
        limits = [min(len(source) + options.max_extra, self.longest) for source in sources]
        return self._mended(self._ranked(sources, options, limits), sources, options, limits)

    def _mended(
        self,
        answers: Iterator[tuple[int, Ranked]],
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        limits: Sequence[int],
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Hypotheses of the answers. Those that are not plain come last: they take longer."""
        odd: dict[int, list[Hypothesis]] = {}
        for place, ranked in answers:
            hypotheses = [self._hypothesis(*one) for one in ranked[: options.n_best]]
            if all(_is_plain(hypothesis, limits[place]) for hypothesis in hypotheses):
                yield place, hypotheses
            else:
                odd[place] = [self._hypothesis(*one) for one in ranked]
        if odd:
            beams = list(odd.values())
            self._mend([sources[place] for place in odd], options, [limits[place] for place in odd], beams)
            for place, hypotheses in zip(odd, beams, strict=True):
                yield place, hypotheses[: options.n_best]

    def _whole_beams(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, limit: int, forbidden: Sequence[int] = ()
    ) -> list[list[Hypothesis]]:
        answers = dict(self._ranked(sources, options, [limit] * len(sources), forbidden))
        return [[self._hypothesis(*one) for one in answers[place]] for place in range(len(sources))]

    def _ranked(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        limits: Sequence[int],
        forbidden: Sequence[int] = (),
    ) -> Iterator[tuple[int, Ranked]]:
        """Each sentence's place and beam: asked for now, and read later. The longest come first: the others are under
        way still."""
        search = _search(options, self.scores != "none")
        if forbidden:
            search = {**search, "suppress_sequences": [[self._target[number]] for number in forbidden]}
        turn = self._workers.of(len(sources))
        under_way: list[tuple[int, Any]] = []
        for places in self._batches(sources, options):
            batch = self._pieces(sources[place] for place in places)
            # A batch has one longest length. In batches of like length, what goes on and on is soon stopped.
            limit = max(limits[place] for place in places)
            results = turn.worker.translate_batch(batch, max_decoding_length=limit, **search)
            under_way += zip(places, results, strict=True)
        return _read(turn, under_way, options)

    def _batches(self, sources: Sequence[Sequence[int]], options: SearchOptions) -> Iterator[list[int]]:
        """Places of sentences, longest first."""
        most = min(options.batch_sentences, _MOST_SENTENCES, max(1, self._most_rows // options.beam))
        order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
        size = self._workers.share(len(order), most)
        return (order[start : start + size] for start in range(0, len(order), size))

    def _hypothesis(self, pieces: list[str], score: float) -> Hypothesis:
        tokens = tuple(map(self._id_of, pieces))
        # Without any token it is the answer to an empty source, which CTranslate2 does not even read.
        ended = not tokens or tokens[-1] == EOS
        return Hypothesis(tokens[:-1] if ended else tokens, score, (), "eos" if ended else "length")

    def _end_loops(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, found: list[list[Hypothesis]]
    ) -> None:
        """The loop guard of `loops.py`, applied to finished outputs as if they had been stopped on the way."""
        cut: dict[tuple[int, int], tuple[int, ...]] = {}
        for place, hypotheses in enumerate(found):
            if any(may_loop(hypothesis.tokens) for hypothesis in hypotheses[: options.n_best]):
                for number, hypothesis in enumerate(hypotheses):
                    kept = _before_loop(hypothesis.tokens)
                    if kept < len(hypothesis.tokens) and not has_loop(sources[place]):
                        cut[place, number] = hypothesis.tokens[:kept]
        scores = self.score([sources[place] for place, _ in cut], list(cut.values())) if cut else []
        for ((place, number), tokens), log_probs in zip(cut.items(), scores, strict=True):
            stopped = Hypothesis.of(tokens, log_probs[: len(tokens)], "loop", options.length_penalty)
            found[place][number] = stopped._replace(log_probs=())
        for place in {place for place, _ in cut}:
            found[place] = best(found[place], options.beam)

    def _with_token_scores(
        self, sources: Sequence[Sequence[int]], found: Iterable[tuple[int, list[Hypothesis]]]
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        known = list(found)
        flat = [(sources[place], hypothesis) for place, hypotheses in known for hypothesis in hypotheses]
        scores = iter(self.score([source for source, _ in flat], [h.tokens for _, h in flat]))
        for place, hypotheses in known:
            yield place, [_scored(hypothesis, next(scores)) for hypothesis in hypotheses]

    def _pieces(self, sources: Iterable[Sequence[int]]) -> list[list[str]]:
        return [[*map(self._source.__getitem__, source), self._end] for source in sources]

    def _check_lengths(self, texts: Iterable[Sequence[int]]) -> None:
        """An end or begin of sentence comes to each."""
        if max(map(len, texts), default=0) >= self.longest:
            raise DataError(f"a sentence of more than {self.longest} tokens is too long; split it")


def _read(turn: Turn, under_way: list[tuple[int, Any]], options: SearchOptions) -> Iterator[tuple[int, Ranked]]:
    with turn:
        for place, result in under_way:
            yield place, _by_score(result.result(), options)


def _by_score(result: Any, options: SearchOptions) -> Ranked:
    """Hypotheses of a beam by the paper's score."""
    said, sums = result.hypotheses, result.scores
    if not sums:
        return [(said[0], math.nan)]
    beam, alpha = options.beam, options.length_penalty
    scored = [(pieces, score * _factor(len(pieces), beam, alpha)) for pieces, score in zip(said, sums, strict=True)]
    return sorted(scored, key=_SCORE, reverse=True)


@lru_cache(maxsize=4096)
def _factor(length: int, beam: int, alpha: float) -> float:
    """From CTranslate2's score to the paper's."""
    return float(length ** _penalty(beam, alpha) / length_penalty(length, alpha))


@lru_cache(maxsize=64)
def _search(options: SearchOptions, scored: bool) -> dict[str, Any]:
    """What CTranslate2 is asked for. It can forbid tokens, but takes probabilities after that: not the model's."""
    for asked, name in (
        (options.sample is not None, "sampling"),
        (options.min_length > 1, "a least length"),
        (options.no_repeat_ngram > 0, "no_repeat_ngram"),
        (options.suppress, "suppressed tokens"),
    ):
        if asked:
            raise _lacks(name)
    return {
        "beam_size": options.beam,
        "num_hypotheses": options.beam,
        "patience": PATIENCE,
        "length_penalty": _penalty(options.beam, options.length_penalty),
        "max_input_length": 0,
        "min_decoding_length": 0,
        "return_end_token": True,
        "return_scores": options.beam > 1 or options.scored or scored,
        "asynchronous": True,
    }


def _check_requests(requests: Sequence[Request]) -> None:
    if any(request.phrases for request in requests):
        raise _lacks("required phrases (glossary, protected spans)")
    if any(request.prefix for request in requests):
        raise _lacks("a forced prefix")


def _lacks(what: str) -> UsageError:
    return UsageError(f"the ctranslate2 engine does not do {what}; use the torch engine")


def _penalty(beam: int, alpha: float) -> float:
    """CTranslate2's α: its penalty then grows with the length as the paper's does, at some 15 tokens.

    Never 0, with which it would stop by another rule; greedy search has none to choose from.
    """
    return max(0.75 * alpha, 1e-6) if beam > 1 else 0.0


def _is_plain(hypothesis: Hypothesis, limit: int) -> bool:
    """Not too long, text, and no loop."""
    return _length(hypothesis) <= limit and _is_text(hypothesis) and not may_loop(hypothesis.tokens)


def _is_text(hypothesis: Hypothesis) -> bool:
    """Neither padding, nor unknown, nor begin of sentence."""
    return min(hypothesis.tokens, default=EOS) >= EOS


def _before_loop(tokens: tuple[int, ...]) -> int:
    """How many tokens stay; all of them where there is no loop."""
    looks = [length for length in range(LEAST_TOKENS, len(tokens) + 1) if due(length)]
    return next((kept for length in looks if (kept := kept_length(tokens[:length])) < length), len(tokens))


def _length(hypothesis: Hypothesis) -> int:
    return len(hypothesis.tokens) + (hypothesis.stopped == "eos")


def _scored(hypothesis: Hypothesis, log_probs: tuple[float, ...]) -> Hypothesis:
    return hypothesis._replace(log_probs=log_probs[: _length(hypothesis)])
