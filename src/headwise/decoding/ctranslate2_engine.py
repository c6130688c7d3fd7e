"""The fast engine for CPUs: CTranslate2 on an exported model. It does plain search only and does not import torch.

Its beam search and the one in `beam.py` keep the same hypotheses, but CTranslate2 ranks them by sum / length ** α, the
paper by sum / ((5 + length) / 6) ** α. So this engine requests the whole beam and ranks it here. What still differs is
seen in models that are not trained well: CTranslate2 spreads the probability of tokens that may not be produced over
the others, and it searches on in a loop (docs/log/beam-search.md).
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ctranslate2

from headwise.cancellation import check_cancelled
from headwise.decoding.ctranslate2_workers import Workers
from headwise.decoding.engine import beyond_ctranslate2
from headwise.decoding.hypothesis import Hypothesis, Scores, best, length_penalty
from headwise.decoding.loops import LEAST_TOKENS, due, has_loop, kept_length, may_loop
from headwise.decoding.options import Request, SearchOptions
from headwise.errors import DataError, UsageError
from headwise.text.tokenizer import BOS, EOS, PAD, UNK, TokenizerPair

if TYPE_CHECKING:
    from headwise.decoding.engine import Floats

# Larger batches do not make the matrix products faster, and no longer fit the cache.
_MOST_SENTENCES = 32
_MOST_ROWS = {"int8": 48, "float32": 80}  # hypotheses, by precision
_BEGUN = 4  # batches per core that are begun before results are read: enough to keep all cores busy


class CTranslate2Engine:
    """An `Engine`. Token scores take a second pass over the output; without scores, greedy search skips the softmax."""

    name = "ctranslate2"

    def __init__(
        self,
        directory: Path,
        tokenizers: TokenizerPair,
        *,
        longest: int,
        precision: str = "int8",
        source_end: bool = True,
        scores: Scores = "sentences",
        workers: int = 0,
    ) -> None:
        """`longest`: the number of positions, in tokens; `source_end`: a source ends with an end of sentence."""
        self.scores, self.longest = scores, longest
        self._source, self._target = tokenizers.source.vocabulary, tokenizers.target.vocabulary
        self._id_of = {piece: number for number, piece in enumerate(self._target)}.__getitem__
        self._most_rows = _MOST_ROWS[precision]
        self._workers = Workers(ctranslate2.Translator, directory, workers)
        self._translator = self._workers.engine
        self._end = [self._source[EOS]] if source_end else []
        self._never = [[self._target[number]] for number in (PAD, UNK, BOS)]

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        if beyond := beyond_ctranslate2(options, requests):
            raise UsageError(f"the ctranslate2 engine does not support {beyond}; use the torch engine")
        self._check_lengths(sources)
        found = [self._end_loops(source, hypotheses, options) for source, hypotheses in
                 zip(sources, self._search(sources, options), strict=True)]  # fmt: skip
        found = [hypotheses[: options.n_best] for hypotheses in found]
        return self._with_token_scores(sources, found, options) if self.scores == "tokens" else found

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        self._check_lengths(itertools.chain(sources, targets))
        check_cancelled()
        pieces = [[self._target[number] for number in target] for target in targets]
        results = self._translator.score_batch(self._pieces(sources), pieces, max_batch_size=64, max_input_length=0)
        return [tuple(result.log_probs) for result in results]

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Floats]:
        """Computes cross-attention for given targets: the mean over heads, in the layer that the export specifies."""
        import numpy as np

        self._check_lengths(itertools.chain(sources, targets))
        results = self._translator.translate_batch(
            self._pieces(sources),
            target_prefix=[[self._target[number] for number in target] for target in targets],
            beam_size=1,
            max_batch_size=64,
            max_input_length=0,
            max_decoding_length=max(map(len, targets), default=0) + 1,
            return_attention=True,
        )
        return [
            np.array([row[: len(source)] for row in result.attention[0][: len(target)]], dtype=np.float32)
            for result, source, target in zip(results, sources, targets, strict=True)
        ]

    def _search(self, sources: Sequence[Sequence[int]], options: SearchOptions) -> list[list[Hypothesis]]:
        """Returns the whole beam of each sentence, best first."""
        arguments = _arguments(options, self.scores != "none")
        found: list[list[Hypothesis]] = [[]] * len(sources)
        begun: deque[list[tuple[int, Any]]] = deque()

        def begin(places: list[int]) -> None:
            check_cancelled()  # a batch that has begun cannot be stopped
            # CTranslate2 takes one limit per batch: that of all its sentences, which have the same length.
            limit = min(len(sources[places[0]]) + options.max_extra, self.longest)
            batch = self._pieces(sources[place] for place in places)
            results = self._translator.translate_batch(
                batch, max_decoding_length=limit, suppress_sequences=self._never, **arguments
            )
            begun.append(list(zip(places, results, strict=True)))

        def collect() -> None:
            for place, result in begun.popleft():
                found[place] = self._ranked(result.result(), options)

        for places in self._batches(sources, options):
            begin(places)
            if len(begun) > _BEGUN * self._workers.cores:
                collect()
        while begun:
            collect()
        return found

    def _batches(self, sources: Sequence[Sequence[int]], options: SearchOptions) -> Iterator[list[int]]:
        """Yields batches of indices of sentences of one length, longest first.

        With padding, sums over the source round otherwise, and int8 makes that large enough to turn a near tie: a
        translation would depend on the other sentences of its batch (docs/log/beam-search.md).
        """
        most = min(options.batch_sentences, _MOST_SENTENCES, max(1, self._most_rows // options.beam))
        order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
        for _, alike in itertools.groupby(order, key=lambda place: len(sources[place])):
            places = list(alike)
            size = math.ceil(len(places) / math.ceil(len(places) / most))
            yield from (places[start : start + size] for start in range(0, len(places), size))

    def _ranked(self, result: Any, options: SearchOptions) -> list[Hypothesis]:
        """Ranks the hypotheses of a beam by the paper's score."""
        scores = result.scores or [math.nan]
        found = []
        for pieces, score in zip(result.hypotheses, scores, strict=True):
            tokens = tuple(map(self._id_of, pieces))
            factor = _factor(len(pieces), options.beam, options.length_penalty)
            # CTranslate2 returns no tokens at all for an empty source.
            ended = not tokens or tokens[-1] == EOS
            found.append(Hypothesis(tokens[:-1] if ended else tokens, score * factor, (), "eos" if ended else "length"))
        return found if len(found) == 1 else sorted(found, key=lambda hypothesis: -hypothesis.score)

    def _end_loops(
        self, source: Sequence[int], hypotheses: list[Hypothesis], options: SearchOptions
    ) -> list[Hypothesis]:
        """Applies the loop guard of `loops.py` to finished outputs, as if they had been stopped during the search."""
        if not any(may_loop(hypothesis.tokens) for hypothesis in hypotheses[: options.n_best]) or has_loop(source):
            return hypotheses
        kept = [hypothesis.tokens[: _before_loop(hypothesis.tokens)] for hypothesis in hypotheses]
        scores = self.score([source] * len(kept), kept)
        stopped = [
            hypothesis
            if len(tokens) == len(hypothesis.tokens)
            else Hypothesis.of(tokens, log_probs[: len(tokens)], "loop", options.length_penalty)._replace(log_probs=())
            for hypothesis, tokens, log_probs in zip(hypotheses, kept, scores, strict=True)
        ]
        return best(stopped, options.beam)

    def _with_token_scores(
        self, sources: Sequence[Sequence[int]], found: list[list[Hypothesis]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """Adds the model's own log-probabilities: those of the search are renormalised over the allowed tokens."""
        flat = [(source, one) for source, hypotheses in zip(sources, found, strict=True) for one in hypotheses]
        scores = iter(self.score([source for source, _ in flat], [one.tokens for _, one in flat]))
        alpha = options.length_penalty
        return [
            best(
                [Hypothesis.of(one.tokens, next(scores)[: _length(one)], one.stopped, alpha) for one in hypotheses],
                options.n_best,
            )
            for hypotheses in found
        ]

    def _pieces(self, sources: Iterable[Sequence[int]]) -> list[list[str]]:
        end = [self._source[EOS]]  # all that there is of an empty source
        return [[*map(self._source.__getitem__, source), *(self._end if source else end)] for source in sources]

    def _check_lengths(self, texts: Iterable[Sequence[int]]) -> None:
        """Refuses texts that do not fit, together with the end or begin of sentence that is added to each."""
        if max(map(len, texts), default=0) >= self.longest:
            raise DataError(f"a sentence is longer than the model's limit of {self.longest} tokens; split it")


@lru_cache(maxsize=4096)
def _factor(length: int, beam: int, alpha: float) -> float:
    """Returns the factor from CTranslate2's score to the paper's."""
    return float(length ** _penalty(beam, alpha) / length_penalty(length, alpha))


@lru_cache(maxsize=64)
def _arguments(options: SearchOptions, scored: bool) -> dict[str, Any]:
    """Returns the arguments of `translate_batch`."""
    return {
        "beam_size": options.beam,
        "num_hypotheses": options.beam,
        "length_penalty": _penalty(options.beam, options.length_penalty),
        "max_input_length": 0,
        "min_decoding_length": 0,
        "return_end_token": True,
        "return_scores": options.beam > 1 or scored,
        "asynchronous": True,
    }


def _penalty(beam: int, alpha: float) -> float:
    """Returns CTranslate2's α for the paper's: both penalties then grow alike with the length, at about 15 tokens.

    Never 0 with a beam, because CTranslate2 would then use another stopping rule.
    """
    return max(0.75 * alpha, 1e-6) if beam > 1 else 0.0


def _before_loop(tokens: tuple[int, ...]) -> int:
    """Returns how many tokens are kept; all of them if there is no loop."""
    checked = [length for length in range(LEAST_TOKENS, len(tokens) + 1) if due(length)]
    return next((kept for length in checked if (kept := kept_length(tokens[:length])) < length), len(tokens))


def _length(hypothesis: Hypothesis) -> int:
    return len(hypothesis.tokens) + (hypothesis.stopped == "eos")
