"""Beam search: at each step the `beam` best continuations of a sentence's hypotheses live on.

    beams ← one empty hypothesis a sentence (several would be equal, and stay so)
    until every sentence is done:
        expand    logits of every hypothesis' next token, by one cached step
        score     log-probability of a hypothesis so far + of its next token
        select    the best (hypothesis, token) pairs of each sentence: `beam` that go on, and those as good that end it
        finish    those that end it are kept aside
        reorder   rows of the model's state, tokens and scores follow their hypotheses

A sentence is done when PATIENCE · beam hypotheses have finished, or when nothing that still runs would beat the worst
finished hypothesis that will be returned, though it grew by a quarter at no cost. With a beam of 1 this is greedy
search; with a beam as wide as the number of possible outputs, and short ones, it is exhaustive search.

Tensors hold what is as wide as the vocabulary; the few candidates of a sentence are sorted out in arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.decoding import loops
from headwise.decoding.hypothesis import PATIENCE, Hypothesis, Stopped, best, length_penalty
from headwise.decoding.interface import Halves, worth_dropping
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_filters import Restrictions
from headwise.decoding.topk import NextTokens, top_pairs
from headwise.text.tokenizer import BOS, EOS, PAD

Array = NDArray[Any]
_DEAD = -np.inf
# Sentences leave the batch when so many of it are done: the past moves anyway, only the source is copied for it.
_DROP_SHARE = 0.05
# A hypothesis that lags behind may catch up by getting longer, since scores are divided by a power of the length. It is
# not waited for beyond a quarter more than it has, and a few tokens (docs/decisions/0014).
_GROWTH = 1.25
_FEW_TOKENS = 3


@dataclass
class Beams:
    """The running hypotheses of the sentences still open: `beam` rows for each, but at first only one."""

    beam: int
    sentences: Array  # (B,) places in the batch
    scores: Array  # (B, width) sums of log-probabilities; -inf is an empty place
    said: Array  # (B · width, length) tokens so far
    log_probs: Array  # (B · width, length) of these tokens

    @classmethod
    def start(cls, count: int, beam: int) -> Beams:
        nothing = np.empty((count, 0))
        return cls(beam, np.arange(count), np.zeros((count, 1)), nothing.astype(np.int64), nothing)

    @property
    def width(self) -> int:
        """Rows a sentence."""
        return int(self.scores.shape[1])

    @property
    def length(self) -> int:
        """Tokens said so far."""
        return int(self.said.shape[1])

    def grow(self, going: Candidates, places: Array | slice) -> tuple[Beams, Array]:
        """The next beams, of the sentences at `places`, and from which row each of theirs comes: (B · beam,)."""
        sums, rows, tokens, log_probs, _ = (part[places] for part in going)
        parents = (rows + np.arange(0, len(self.said), self.width)[places, None]).ravel()
        said = np.concatenate((self.said[parents], tokens.reshape(-1, 1)), axis=1)
        of_said = np.concatenate((self.log_probs[parents], log_probs.reshape(-1, 1)), axis=1)
        return Beams(self.beam, self.sentences[places], sums, said, of_said), parents

    def spoken(self, place: int, slot: int) -> tuple[list[int], list[float]]:
        """Tokens of a hypothesis of the sentence at `place`, and their log-probabilities."""
        row = place * self.width + slot
        return self.said[row].tolist(), self.log_probs[row].tolist()

    def newest(self) -> Array:  # (B · width,)
        return self.said[:, -1] if self.length else np.full(len(self.said), BOS)

    def row_sentences(self) -> Array:  # (B · width,)
        return np.repeat(self.sentences, self.width)


class Candidates(NamedTuple):
    """The best ways to go on, best first, (B, beam) each, and what ends."""

    sums: Array  # of log-probabilities, with the token's; -inf is none
    rows: Array  # which of the sentence's hypotheses goes on
    tokens: Array
    log_probs: Array  # of the tokens
    ends: Array  # (B, width) log-probability of the end of sentence for hypotheses that end now, else -inf


# (log-probabilities of the next token of each row (B · width, V), beams, restrictions) -> candidates
Select = Callable[[Tensor, Beams, Restrictions], Candidates]


def select(log_probs: Tensor, beams: Beams, restrictions: Restrictions) -> Candidates:
    """The best `beam` continuations, and the ends of sentence that would be among the best `beam` with them."""
    log_probs = restrict(log_probs, beams, restrictions)
    to_end = log_probs.select(1, EOS)
    ends = to_end.clone().cpu().numpy().reshape(-1, beams.width)
    to_end.fill_(_DEAD)
    so_far = torch.from_numpy(beams.scores).to(log_probs.device, log_probs.dtype)
    sums, rows, tokens, added = (part.cpu().numpy() for part in top_pairs(log_probs, so_far, beams.beam))
    missing = beams.beam - sums.shape[1]
    if missing > 0:  # places for which there are no continuations
        sums, rows, tokens, added = (np.pad(part, ((0, 0), (0, missing))) for part in (sums, rows, tokens, added))
        sums[:, -missing:] = _DEAD
    return Candidates(sums, rows, tokens, added, _best_ends(ends, beams, sums))


def _best_ends(log_probs: Array, beams: Beams, others: Array) -> Array:
    """-inf for all but those of which fewer than `beam` ends or other continuations, (B, beam), are better."""
    sums = beams.scores + log_probs
    if (sums > others[:, -1:]).any():
        rivals = np.concatenate((sums, others), axis=1)  # (B, width + beam)
        better = (rivals[:, None, :] > sums[:, :, None]).sum(axis=-1)
        log_probs[better >= beams.beam] = _DEAD
    else:
        log_probs.fill(_DEAD)
    return log_probs


def restrict(log_probs: Tensor, beams: Beams, restrictions: Restrictions) -> Tensor:
    """The log-probabilities with -inf, in place, for what may not come next."""
    sentences = history = None
    if restrictions.uses_sentences:
        sentences = torch.from_numpy(beams.row_sentences()).to(log_probs.device)
    if restrictions.uses_history:
        history = torch.from_numpy(beams.said).to(log_probs.device)
    return restrictions.apply(log_probs, beams.length, sentences, history)


class Ended:
    """Hypotheses that have ended, of each sentence of a batch, and whether a sentence is worth a further step."""

    def __init__(self, limits: Sequence[int], guarded: Sequence[bool], beam: int, options: SearchOptions) -> None:
        self.guarded, self.beam, self.options = guarded, beam, options
        self.found: list[list[Hypothesis]] = [[] for _ in limits]
        self._limits, self._least_limit = np.array(limits), min(limits)
        self._last_penalties = np.array([length_penalty(limit, options.length_penalty) for limit in limits])
        self._missing = np.full(len(limits), round(beam * PATIENCE))
        # The score that a running hypothesis must pass: of the worst one that would be returned.
        self._to_beat = np.full(len(limits), _DEAD)

    def add(self, sentence: int, tokens: Sequence[int], log_probs: Sequence[float], stopped: Stopped) -> None:
        found = self.found[sentence]
        found.append(Hypothesis.of(tokens, log_probs, stopped, self.options.length_penalty))
        self._missing[sentence] -= 1
        if len(found) >= self.options.n_best:
            worst = best(found, self.options.n_best)[-1]
            self._to_beat[sentence] = worst.score if worst.stopped != "loop" else _DEAD

    def sort_out(self, candidates: Candidates, beams: Beams) -> None:
        """Keeps what ends, and what there is no room to go on for. Of a sentence that is done nothing goes on."""
        sentences, length, (sums, rows, tokens, log_probs, ends) = beams.sentences, beams.length + 1, candidates
        ending = ends + beams.scores > _DEAD  # (B, width)
        if ending.any():
            for place, row in np.argwhere(ending).tolist():
                said, of_said = beams.spoken(place, row)
                self.add(sentences[place], said, [*of_said, float(ends[place, row])], "eos")
        if length >= self._least_limit:
            for place in np.flatnonzero(length >= self._limits[sentences]).tolist():
                for slot in range(self.beam - ending[place].sum()):
                    if sums[place, slot] > _DEAD:
                        said, of_said = beams.spoken(place, rows[place, slot])
                        whole = [*said, int(tokens[place, slot])], [*of_said, float(log_probs[place, slot])]
                        self.add(sentences[place], *whole, "length")
                sums[place] = _DEAD
        if any(self.found):
            longest = length_penalty(int(_GROWTH * length) + _FEW_TOKENS, self.options.length_penalty)
            # Sums of log-probabilities only fall, so today's over a later penalty bounds the score until then.
            bound = sums[:, 0] / np.minimum(longest, self._last_penalties[sentences])
            sums[(self._missing[sentences] <= 0) | (bound <= self._to_beat[sentences])] = _DEAD
        nothing = ~(sums > _DEAD)
        if nothing.any():
            sums[nothing], tokens[nothing] = _DEAD, PAD

    def stop_loops(self, beams: Beams) -> None:
        """Hypotheses that are caught in a cycle have ended; their places are empty then."""
        for place, slot in np.argwhere(beams.scores > _DEAD).tolist():
            if not self.guarded[beams.sentences[place]]:
                continue
            tokens, log_probs = beams.spoken(place, slot)
            kept = loops.kept_length(tokens)
            if kept < len(tokens):
                self.add(beams.sentences[place], tokens[:kept], log_probs[:kept], "loop")
                beams.scores[place, slot] = _DEAD


def beam_search(
    model: Halves, sources: Sources, options: SearchOptions, beam: int | None = None, choose: Select = select
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence that `choose` leads to."""
    beam, device = options.beam if beam is None else beam, sources.ids.device
    state, next_tokens = model.start(model.encode(sources.ids, sources.lengths), beam), NextTokens(model)
    beams, restrictions = Beams.start(len(sources), beam), Restrictions(sources, options)
    ended = Ended(sources.limits.tolist(), sources.guarded.tolist(), beam, options)
    while True:
        _, log_probs = next_tokens(model.advance(state, torch.from_numpy(beams.newest()).to(device)))
        going = choose(log_probs, beams, restrictions)
        ended.sort_out(going, beams)
        left = np.flatnonzero(going.sums[:, 0] > _DEAD)
        if not left.size:
            break
        dropping = worth_dropping(len(left), len(going.sums), _DROP_SHARE)
        beams, parents = beams.grow(going, left if dropping else slice(None))
        state.reorder(torch.from_numpy(parents).to(device))
        if loops.due(beams.length):
            ended.stop_loops(beams)
    return [best(found, options.n_best) for found in ended.found]
