"""Beam search: at each step the `beam` best continuations of a sentence's hypotheses live on.

    beams ← one empty hypothesis a sentence
    until every sentence is done:
        expand    logits of every hypothesis' next token, by one cached step
        score     log-probability of a hypothesis so far + of its next token
        select    the best 2 · beam (hypothesis, token) pairs of each sentence
        finish    pairs among the best `beam` that end the sentence are kept aside; the best `beam` others go on
        reorder   rows of the model's state, tokens and scores follow their hypotheses

A sentence is done when `beam` hypotheses have finished, or when nothing that still runs can beat the worst finished
hypothesis that will be returned. With a beam of 1 this is greedy search; with a beam as wide as the number of
possible outputs it is exhaustive search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.decoding import loops
from headwise.decoding.batching import Sources
from headwise.decoding.candidates import NextTokens, Scored, top_tokens
from headwise.decoding.hypothesis import Hypothesis, Stopped, best
from headwise.decoding.model import Halves, State, worth_dropping
from headwise.decoding.options import SearchOptions
from headwise.decoding.restrictions import Restrictions
from headwise.text.tokenizer import BOS, EOS, PAD

_DEAD = float("-inf")


@dataclass
class Beams:
    """The running hypotheses of the sentences still open; `beam` rows for each of B sentences, best first."""

    sentences: Tensor  # (B,) places in the batch
    scores: Tensor  # (B, beam) sums of log-probabilities; -inf is an empty place
    tokens: Tensor  # (B · beam, longest)
    log_probs: Tensor  # (B · beam, longest)
    length: int = 0  # tokens said so far

    @classmethod
    def start(cls, sources: Sources, beam: int) -> Beams:
        count, longest, device = len(sources), int(sources.limits.max()), sources.ids.device
        scores = torch.full((count, beam), _DEAD, device=device)
        scores[:, 0] = 0.0  # beam equal hypotheses would stay equal: one is enough to begin with
        size = (count * beam, longest)
        tokens, log_probs = torch.full(size, PAD, device=device), torch.zeros(size, device=device)
        return cls(torch.arange(count, device=device), scores, tokens, log_probs)

    @property
    def beam(self) -> int:
        return self.scores.size(1)

    @property
    def history(self) -> Tensor:  # (B · beam, length)
        return self.tokens[:, : self.length]

    @property
    def row_sentences(self) -> Tensor:  # (B · beam,)
        return self.sentences.repeat_interleave(self.beam)

    def last_tokens(self) -> Tensor:  # (B · beam,)
        return self.tokens[:, self.length - 1] if self.length else self.tokens.new_full((self.tokens.size(0),), BOS)


@dataclass(frozen=True)
class Candidates:
    """Continuations of each sentence, best first: all (B, C)."""

    scores: Tensor  # sum of log-probabilities with the token; -inf is no candidate
    parents: Tensor  # which of the sentence's hypotheses goes on
    tokens: Tensor
    log_probs: Tensor  # of the token alone


# (what may follow each row, beams, restrictions) -> the best 2 · beam of each sentence
Select = Callable[[Iterable[Scored], Beams, Restrictions], Candidates]


def select(following: Iterable[Scored], beams: Beams, restrictions: Restrictions) -> Candidates:
    """The best 2 · beam continuations: at most `beam` of them can end a sentence, so `beam` are left to go on."""
    count, beam = beams.scores.shape
    # Of one hypothesis, beam + 1 tokens are enough: the end of sentence and `beam` others.
    found = [top_tokens(restrict(scored, beams, restrictions), beam + 1) for scored in following]
    highest, tokens = found[0] if len(found) == 1 else map(torch.cat, zip(*found, strict=True))  # (B · beam, C)
    each = highest.size(1)
    totals = (highest.view(count, beam, each) + beams.scores[:, :, None]).view(count, beam * each)
    scores, place = totals.topk(min(2 * beam, beam * each), dim=1)
    parents = place.div(each, rounding_mode="floor")
    return Candidates(
        scores, parents, tokens.view(count, -1).gather(1, place), highest.view(count, -1).gather(1, place)
    )


def restrict(scored: Scored, beams: Beams, restrictions: Restrictions) -> Tensor:
    """The log-probabilities with -inf, in place, for what may not come next."""
    history = beams.history[scored.rows] if restrictions.uses_history else None
    return restrictions.apply(scored.log_probs, beams.length, beams.row_sentences[scored.rows], history)


def advance(beams: Beams, state: State, candidates: Candidates, done: Tensor, kept: Tensor) -> Beams:
    """The next beams: the best candidates that do not end, of the sentences at `kept`; done sentences are emptied."""
    going = candidates.scores.masked_fill((candidates.tokens == EOS) | done[:, None], _DEAD)
    if kept.numel() < going.size(0):
        going = going[kept]
    scores, place = going.topk(min(beams.beam, going.size(1)), dim=1)
    if place.size(1) < beams.beam:  # a vocabulary smaller than the beam
        missing = beams.beam - place.size(1)
        scores = torch.cat((scores, scores.new_full((scores.size(0), missing), _DEAD)), dim=1)
        place = torch.cat((place, place.new_zeros(place.size(0), missing)), dim=1)
    parents, tokens, log_probs = (
        (x if kept.numel() == x.size(0) else x[kept]).gather(1, place)
        for x in (candidates.parents, candidates.tokens, candidates.log_probs)
    )
    rows = (kept[:, None] * beams.beam + parents).view(-1)
    state.reorder(rows)
    moved = Beams(beams.sentences[kept], scores, beams.tokens[rows], beams.log_probs[rows], beams.length + 1)
    moved.tokens[:, beams.length] = tokens.view(-1)
    moved.log_probs[:, beams.length] = log_probs.view(-1)
    return moved


class Finished:
    """Hypotheses that have ended, and when their sentences are done."""

    def __init__(self, sources: Sources, options: SearchOptions, beam: int) -> None:
        self.options, self.beam = options, beam
        self.limits = sources.limits
        self.found: list[list[Hypothesis]] = [[] for _ in sources.indices]
        device = sources.ids.device
        self.counts = torch.zeros(len(sources), dtype=torch.long, device=device)
        # The score that a running hypothesis must pass: of the worst one that would be returned.
        self.to_beat = torch.full((len(sources),), _DEAD, device=device)
        # Sums of log-probabilities only fall, so dividing today's by the largest penalty bounds every later score.
        self.largest_penalty = ((5.0 + self.limits) / 6.0) ** options.length_penalty
        self.guarded = sources.guarded

    def add(self, sentence: int, tokens: list[int], log_probs: list[float], stopped: Stopped) -> None:
        hypothesis = Hypothesis.of(tokens, log_probs, stopped, self.options.length_penalty)
        found = self.found[sentence]
        found.append(hypothesis)
        self.counts[sentence] += 1
        if len(found) >= self.options.n_best:
            kept = best(found, self.options.n_best)
            self.to_beat[sentence] = kept[-1].score if kept[-1].stopped != "loop" else _DEAD

    def collect(self, beams: Beams, candidates: Candidates) -> None:
        """Keeps the candidates among the best `beam` that end, and all of those where there is no room for more."""
        tokens = candidates.tokens[:, : self.beam]
        over = tokens == EOS
        full = self.limits[beams.sentences] <= beams.length + 1
        over |= full[:, None]
        over &= candidates.scores[:, : self.beam] > _DEAD
        if not bool(over.any()):
            return
        places = over.nonzero()
        row = places[:, 0] * beams.beam + candidates.parents[:, : self.beam][over]
        heads, head_log_probs = beams.history[row].tolist(), beams.log_probs[row, : beams.length].tolist()
        ends, end_log_probs = tokens[over].tolist(), candidates.log_probs[:, : self.beam][over].tolist()
        for index, sentence in enumerate(beams.sentences[places[:, 0]].tolist()):
            ended = ends[index] == EOS
            said = heads[index] if ended else [*heads[index], ends[index]]
            self.add(sentence, said, [*head_log_probs[index], end_log_probs[index]], "eos" if ended else "length")

    def drop_loops(self, beams: Beams) -> None:
        """Takes hypotheses that are caught in a cycle out of the beam."""
        stuck = loops.looping(beams.history).view_as(beams.scores)
        stuck &= self.guarded[beams.sentences][:, None] & (beams.scores > _DEAD)
        for place, column in stuck.nonzero().tolist():
            row = place * beams.beam + column
            tokens = beams.history[row].tolist()
            kept = loops.kept_length(tokens)
            log_probs = beams.log_probs[row, :kept].tolist()
            self.add(int(beams.sentences[place]), tokens[:kept], log_probs, "loop")
        beams.scores.masked_fill_(stuck, _DEAD)

    def done(self, beams: Beams, candidates: Candidates) -> Tensor:
        """Which of the open sentences need no further step, bool (B,)."""
        where = beams.sentences
        going = candidates.scores.masked_fill(candidates.tokens == EOS, _DEAD).amax(dim=1)
        hopeless = going / self.largest_penalty[where] <= self.to_beat[where]
        full = self.limits[where] <= beams.length + 1
        return (self.counts[where] >= self.beam) | hopeless | full | (going == _DEAD)


def beam_search(
    model: Halves, sources: Sources, options: SearchOptions, beam: int | None = None, choose: Select = select
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence that `choose` leads to."""
    beam = options.beam if beam is None else beam
    state, score = model.start(model.encode(sources.ids, sources.lengths), beam), NextTokens(model)
    beams, finished = Beams.start(sources, beam), Finished(sources, options, beam)
    restrictions = Restrictions(sources, options)
    while True:
        candidates = choose(score(model.advance(state, beams.last_tokens())), beams, restrictions)
        finished.collect(beams, candidates)
        done = finished.done(beams, candidates)
        left = (~done).nonzero().squeeze(1)
        if left.numel() == 0:
            break
        if not worth_dropping(left.numel(), done.numel()):
            left = torch.arange(done.numel(), device=done.device)
        beams = advance(beams, state, candidates, done, left)
        if loops.due(beams.length):
            finished.drop_loops(beams)
    return [best(found, options.n_best) for found in finished.found]
