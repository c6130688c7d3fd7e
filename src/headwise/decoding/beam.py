"""Beam search: at each step the `beam` best continuations of a sentence's hypotheses live on.

    beams ← one empty hypothesis a sentence (several would be equal, and stay so)
    until every sentence is done:
        expand    logits of every hypothesis' next token, by one cached step
        score     log-probability of a hypothesis so far + of its next token
        select    the best 2 · beam (hypothesis, token) pairs of each sentence
        finish    pairs among the best `beam` that end the sentence are kept aside; the best `beam` others go on
        reorder   rows of the model's state, tokens and scores follow their hypotheses

A sentence is done when PATIENCE · beam hypotheses have finished, or when nothing that still runs would beat the worst
finished hypothesis that will be returned, though it grew by a quarter at no cost. With a beam of 1 this is greedy
search; with a beam as wide as the number of possible outputs, and short ones, it is exhaustive search.

Tensors hold what is as wide as the vocabulary; the few candidates of a sentence are sorted out in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.decoding import loops
from headwise.decoding.batching import Sources
from headwise.decoding.candidates import NextTokens, Scored, top_pairs
from headwise.decoding.hypothesis import PATIENCE, Hypothesis, Stopped, best, length_penalty
from headwise.decoding.model import Halves, State, worth_dropping
from headwise.decoding.options import SearchOptions
from headwise.decoding.restrictions import Restrictions
from headwise.text.tokenizer import BOS, EOS, PAD

Device = torch.device | str
_DEAD = float("-inf")
# Sentences leave the batch when so many of it are done: the past moves anyway, only the source is copied for it.
_DROP_SHARE = 0.05
# A hypothesis that lags behind may catch up by getting longer, since scores are divided by a power of the length. It is
# not waited for beyond a quarter more than it has, and a few tokens (docs/decisions/0014).
_GROWTH = 1.25
_FEW_TOKENS = 3

# What a hypothesis has said: (all before, the newest token, its log-probability). Hypotheses share their past.
Said = tuple["Said", int, float] | None
# Of one sentence: (sum of log-probabilities with the token, which hypothesis goes on, the token, its log-probability)
Candidate = tuple[float, int, int, float]


@dataclass
class Beams:
    """The running hypotheses of the sentences still open: `beam` rows for each, but at first only one."""

    beam: int
    sentences: list[int]  # places in the batch
    scores: list[float]  # of each row, the sum of log-probabilities; -inf is an empty place
    tokens: list[int]  # the newest of each row
    said: list[Said]
    length: int = 0  # tokens said so far

    @classmethod
    def start(cls, count: int, beam: int) -> Beams:
        return cls(beam, list(range(count)), [0.0] * count, [BOS] * count, [None] * count)

    @property
    def width(self) -> int:
        """Rows a sentence."""
        return len(self.scores) // len(self.sentences)

    def history(self) -> list[list[int]]:  # B · width times `length`
        rows = zip(self.scores, self.said, strict=True)
        return [[PAD] * self.length if score == _DEAD else spoken(said)[0] for score, said in rows]

    def row_sentences(self) -> list[int]:
        return [sentence for sentence in self.sentences for _ in range(self.width)]


def spoken(said: Said) -> tuple[list[int], list[float]]:
    """Tokens and their log-probabilities, in order."""
    tokens, log_probs = [], []
    while said is not None:
        said, token, log_prob = said
        tokens.append(token)
        log_probs.append(log_prob)
    return tokens[::-1], log_probs[::-1]


# (what may follow each row, beams, restrictions) -> for each sentence its continuations: those that end do so if they
# are among the first `beam`; of the others, best first, the first `beam` go on
Select = Callable[[Iterable[Scored], Beams, Restrictions], list[list[Candidate]]]


def select(following: Iterable[Scored], beams: Beams, restrictions: Restrictions) -> list[list[Candidate]]:
    """The best 2 · beam continuations: at most `beam` of them can end a sentence, so `beam` are left to go on."""
    width = beams.width
    found: list[list[Candidate]] = []
    for scored in following:
        log_probs = restrict(scored, beams, restrictions)
        so_far = _tensor(beams.scores[scored.rows], log_probs.device, log_probs.dtype).view(-1, width)
        pairs = (part.tolist() for part in top_pairs(log_probs, so_far, 2 * beams.beam))
        found += [_alive(zip(*of_one, strict=True)) for of_one in zip(*pairs, strict=True)]
    return found


def _tensor(numbers: Sequence[float], device: Device, dtype: torch.dtype = torch.long) -> Tensor:
    return torch.as_tensor(np.array(numbers), dtype=dtype, device=device)  # several times as fast as from a list


def _alive(candidates: Iterable[Candidate]) -> list[Candidate]:
    found = list(candidates)
    return found if found[-1][0] > _DEAD else [candidate for candidate in found if candidate[0] > _DEAD]


def restrict(scored: Scored, beams: Beams, restrictions: Restrictions) -> Tensor:
    """The log-probabilities with -inf, in place, for what may not come next."""
    sentences = history = None
    if restrictions.uses_sentences:
        sentences = torch.tensor(beams.row_sentences()[scored.rows], device=scored.log_probs.device)
    if restrictions.uses_history:
        said = beams.history()[scored.rows]
        history = torch.tensor(said, dtype=torch.long, device=scored.log_probs.device).view(len(said), beams.length)
    return restrictions.apply(scored.log_probs, beams.length, sentences, history)


class Ended:
    """Hypotheses of a sentence that have ended, and whether it is worth a further step."""

    def __init__(self, limit: int, guarded: bool, beam: int, options: SearchOptions) -> None:
        self.limit, self.guarded, self.beam, self.options = limit, guarded, beam, options
        self.found: list[Hypothesis] = []
        self.enough = round(beam * PATIENCE)
        # The score that a running hypothesis must pass: of the worst one that would be returned.
        self.to_beat = _DEAD

    def add(self, tokens: Sequence[int], log_probs: Sequence[float], stopped: Stopped) -> None:
        self.found.append(Hypothesis.of(tokens, log_probs, stopped, self.options.length_penalty))
        if len(self.found) >= self.options.n_best:
            worst = best(self.found, self.options.n_best)[-1]
            self.to_beat = worst.score if worst.stopped != "loop" else _DEAD

    def sort_out(self, candidates: list[Candidate], said: list[Said], length: int) -> list[Candidate]:
        """Keeps the candidates among the best `beam` that end, and all of those where there is no room for more.

        `said` is of the sentence's rows. Gives the best `beam` others, which go on; none if the sentence is done.
        """
        going = [candidate for candidate in candidates if candidate[2] != EOS]
        full = length + 1 >= self.limit
        if full or len(going) < len(candidates):
            for _, parent, token, log_prob in candidates[: self.beam]:
                if token == EOS:
                    tokens, log_probs = spoken(said[parent])
                    self.add(tokens, [*log_probs, log_prob], "eos")
                elif full:
                    self.add(*spoken((said[parent], token, log_prob)), "length")
        if full or not going or len(self.found) >= self.enough or self._hopeless(going[0][0], length + 1):
            return []
        return going[: self.beam]

    def _hopeless(self, best_sum: float, length: int) -> bool:
        """Sums of log-probabilities only fall, so today's over a later penalty bounds the score until then."""
        longest = min(self.limit, int(_GROWTH * length) + _FEW_TOKENS)
        return best_sum / length_penalty(longest, self.options.length_penalty) <= self.to_beat

    def stuck(self, said: Said) -> bool:
        """Whether a hypothesis is caught in a cycle; it has ended then."""
        tokens, log_probs = spoken(said)
        kept = loops.kept_length(tokens) if self.guarded else len(tokens)
        if kept < len(tokens):
            self.add(tokens[:kept], log_probs[:kept], "loop")
        return kept < len(tokens)


def advance(beams: Beams, state: State, going: list[list[Candidate]], places: Iterable[int], device: Device) -> Beams:
    """The next beams, of the sentences at `places`: what goes on in each, and empty places."""
    moved = Beams(beams.beam, [], [], [], [], beams.length + 1)
    parents = []
    width, said = beams.width, beams.said
    for place in places:
        first = place * width
        moved.sentences.append(beams.sentences[place])
        missing = beams.beam - len(going[place])
        if going[place]:
            scores, rows, tokens, _ = zip(*going[place], strict=True)
            moved.scores += scores
            moved.tokens += tokens
            parents += [first + row for row in rows]
            moved.said += [(said[first + row], token, log_prob) for _, row, token, log_prob in going[place]]
        if missing:
            moved.scores += [_DEAD] * missing
            moved.tokens += [PAD] * missing
            parents += [first] * missing
            moved.said += [None] * missing
    state.reorder(_tensor(parents, device))
    return moved


def beam_search(
    model: Halves, sources: Sources, options: SearchOptions, beam: int | None = None, choose: Select = select
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence that `choose` leads to."""
    beam, device = options.beam if beam is None else beam, sources.ids.device
    state, score = model.start(model.encode(sources.ids, sources.lengths), beam), NextTokens(model)
    beams, restrictions = Beams.start(len(sources), beam), Restrictions(sources, options)
    limits, guarded = sources.limits.tolist(), sources.guarded.tolist()
    ended = [Ended(*each, beam, options) for each in zip(limits, guarded, strict=True)]
    while True:
        states = model.advance(state, _tensor(beams.tokens, device))
        width = beams.width
        candidates = choose(score(states, width), beams, restrictions)
        going = [
            ended[sentence].sort_out(candidates[place], beams.said[place * width : (place + 1) * width], beams.length)
            for place, sentence in enumerate(beams.sentences)
        ]
        left = [place for place, others in enumerate(going) if others]
        if not left:
            break
        dropping = worth_dropping(len(left), len(going), _DROP_SHARE)
        beams = advance(beams, state, going, left if dropping else range(len(going)), device)
        if loops.due(beams.length):
            for row, said in enumerate(beams.said):
                if ended[beams.sentences[row // beam]].stuck(said):
                    beams.scores[row] = _DEAD
    return [best(one.found, options.n_best) for one in ended]
