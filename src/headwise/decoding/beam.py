"""Beam search: at each step the `beam` best continuations of a sentence's hypotheses survive.

    beams ← one empty hypothesis per sentence (several would be identical)
    until every sentence is done:
        expand    logits of every hypothesis' next token, by one cached step
        score     log-probability of a hypothesis so far + of its next token
        select    the 2 · beam best (hypothesis, token) pairs of each sentence
        finish    those of the first `beam` that end the sentence are set aside; the best `beam` others continue
        reorder   rows of the model's state, tokens and scores follow their hypotheses

A sentence is done when `beam` hypotheses have ended. With a beam of 1 this is greedy search; with a beam as wide as the
number of possible outputs it is exhaustive search.

Whatever is as wide as the vocabulary is a torch tensor; the few candidates of a sentence are NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.cancellation import check_cancelled
from headwise.decoding import loops
from headwise.decoding.hypothesis import Hypothesis, Stopped, best
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Searched
from headwise.decoding.token_filters import TokenFilters
from headwise.decoding.topk import top_pairs
from headwise.models.interface import Stepper
from headwise.text.tokenizer import EOS, PAD

Array = NDArray[Any]
_DEAD = -np.inf


@dataclass(frozen=True)
class Beams:
    """The running hypotheses of the unfinished sentences: `beam` rows per sentence, but only one at the start."""

    beam: int
    sentences: Array  # (B,) indices in the batch
    scores: Array  # (B, width) sums of log-probabilities; -inf marks an empty slot
    tokens: Array  # (B · width, length) tokens so far
    log_probs: Array  # (B · width, length) their log-probabilities

    @classmethod
    def start(cls, count: int, beam: int) -> Beams:
        nothing = np.empty((count, 0))
        return cls(beam, np.arange(count), np.zeros((count, 1)), nothing.astype(np.int64), nothing)

    @property
    def width(self) -> int:
        """Rows per sentence."""
        return int(self.scores.shape[1])

    @property
    def length(self) -> int:
        return int(self.tokens.shape[1])

    def newest(self) -> Array:  # (B · width,)
        return self.tokens[:, -1]

    def row_sentences(self) -> Array:  # (B · width,)
        return np.repeat(self.sentences, self.width)


class Candidates(NamedTuple):
    """Continuations of each sentence, best first: (B, 2 · beam) each."""

    sums: Array  # log-probability of the hypothesis including the new token; -inf marks an empty slot
    rows: Array  # which of the sentence's hypotheses is continued
    tokens: Array
    log_probs: Array  # of the new tokens


class Ended(NamedTuple):
    """A hypothesis that has ended."""

    sentence: int
    tokens: list[int]
    log_probs: list[float]
    stopped: Stopped


# (log-probabilities of the next token of each row (B · width, V), beams, filters) -> candidates
Select = Callable[[Tensor, Beams, TokenFilters], Candidates]


def restrict(log_probs: Tensor, beams: Beams, filters: TokenFilters) -> Tensor:
    """Sets the log-probabilities of tokens that may not come next to -inf, in place."""
    sentences = history = None
    if filters.uses_sentences:
        sentences = torch.from_numpy(beams.row_sentences()).to(log_probs.device)
    if filters.uses_history:
        history = torch.from_numpy(beams.tokens).to(log_probs.device)
    return filters.apply(log_probs, beams.length, sentences, history)


def select(log_probs: Tensor, beams: Beams, filters: TokenFilters) -> Candidates:
    """Selects the 2 · beam best continuations, so that `beam` remain even if every hypothesis ends."""
    return best_continuations(restrict(log_probs, beams, filters), beams)


def best_continuations(log_probs: Tensor, beams: Beams) -> Candidates:
    """Returns the 2 · beam best pairs of a hypothesis and its next token, for each sentence."""
    so_far = torch.from_numpy(beams.scores).to(log_probs.device, log_probs.dtype)
    pairs = top_pairs(log_probs, so_far, 2 * beams.beam)
    found = Candidates(*(part.cpu().numpy() for part in pairs))
    missing = 2 * beams.beam - found.sums.shape[1]
    if not missing:
        return found
    empty = ((0, 0), (0, missing))  # a small vocabulary may have fewer continuations than the beam has slots
    return Candidates(np.pad(found.sums, empty, constant_values=_DEAD), *(np.pad(part, empty) for part in found[1:]))


def finish(candidates: Candidates, beams: Beams, limits: Array) -> tuple[list[Ended], Candidates]:
    """Separates the hypotheses that end from the candidates that continue, (B, beam) each; none do at the limit."""
    alive = candidates.sums > _DEAD
    ends = alive & (candidates.tokens == EOS)
    last = beams.length + 1 >= limits[beams.sentences]  # (B,)
    first = np.arange(alive.shape[1]) < beams.beam  # only the best `beam` may end
    ended = [
        _ended(candidates, beams, place, slot)
        for place, slot in np.argwhere(first & (ends | (alive & last[:, None]))).tolist()
    ]
    # Takes the first `beam` that do not end, in order: a stable sort puts them before those that do.
    order = np.argsort(ends | ~alive, axis=1, kind="stable")[:, : beams.beam]
    going = Candidates(*(np.take_along_axis(part, order, axis=1) for part in candidates))
    dead = np.take_along_axis(ends | ~alive, order, axis=1) | last[:, None]
    sums, tokens = np.where(dead, _DEAD, going.sums), np.where(dead, PAD, going.tokens)
    return ended, going._replace(sums=sums, tokens=tokens)


def _ended(candidates: Candidates, beams: Beams, place: int, slot: int) -> Ended:
    row = place * beams.width + int(candidates.rows[place, slot])
    token, tokens = int(candidates.tokens[place, slot]), beams.tokens[row].tolist()
    log_probs = [*beams.log_probs[row].tolist(), float(candidates.log_probs[place, slot])]
    if token == EOS:
        return Ended(int(beams.sentences[place]), tokens, log_probs, "eos")
    return Ended(int(beams.sentences[place]), [*tokens, token], log_probs, "length")


def grow(beams: Beams, going: Candidates, places: Array) -> tuple[Beams, Array]:
    """Builds the next beams of the sentences at `places`; also returns the parent of each row: (B · beam,)."""
    sums, rows, tokens, log_probs = (part[places] for part in going)
    parents = (rows + np.arange(0, len(beams.tokens), beams.width)[places, None]).ravel()
    all_tokens = np.concatenate((beams.tokens[parents], tokens.reshape(-1, 1)), axis=1)
    all_log_probs = np.concatenate((beams.log_probs[parents], log_probs.reshape(-1, 1)), axis=1)
    return Beams(beams.beam, beams.sentences[places], sums, all_tokens, all_log_probs), parents


def stop_loops(beams: Beams, guarded: Array) -> tuple[list[Ended], Beams]:
    """Ends hypotheses that are caught in a loop, which leaves their slots empty."""
    ended, scores = [], beams.scores.copy()
    for place, slot in np.argwhere((scores > _DEAD) & guarded[beams.sentences][:, None]).tolist():
        row = place * beams.width + slot
        tokens = beams.tokens[row].tolist()
        kept = loops.kept_length(tokens)
        if kept < len(tokens):
            log_probs = beams.log_probs[row, :kept].tolist()
            ended.append(Ended(int(beams.sentences[place]), tokens[:kept], log_probs, "loop"))
            scores[place, slot] = _DEAD
    return ended, replace(beams, scores=scores)


def beam_search(
    stepper: Stepper, sources: Searched, options: SearchOptions, beam: int | None = None, choose: Select = select
) -> list[list[Hypothesis]]:
    """Searches for the `n_best` best hypotheses of each sentence; `choose` selects the candidates at each step."""
    beam, device = options.beam if beam is None else beam, sources.limits.device
    limits, guarded = sources.limits.cpu().numpy(), sources.guarded.cpu().numpy()
    state, filters = stepper.start(sources.inputs, beam), TokenFilters.of(sources, options)
    beams, found = Beams.start(len(sources), beam), [list[Hypothesis]() for _ in range(len(sources))]

    def keep(ended: list[Ended]) -> None:
        for one in ended:
            hypothesis = Hypothesis.of(one.tokens, one.log_probs, one.stopped, options.length_penalty)
            found[one.sentence].append(hypothesis)

    newest = sources.prompt
    while True:
        check_cancelled()
        logits = stepper.output.logits(stepper.advance(state, newest))
        ended, going = finish(choose(logits.log_softmax(dim=-1), beams, filters), beams, limits)
        keep(ended)
        done = np.array([len(found[sentence]) >= beam for sentence in beams.sentences])
        places = np.flatnonzero((going.sums[:, 0] > _DEAD) & ~done)
        if not places.size:
            break
        beams, parents = grow(beams, going, places)
        state.reorder(torch.from_numpy(parents).to(device))
        if loops.due(beams.length):
            ended, beams = stop_loops(beams, guarded)
            keep(ended)
        newest = torch.from_numpy(beams.newest()).to(device)
    return [best(hypotheses, options.n_best) for hypotheses in found]
