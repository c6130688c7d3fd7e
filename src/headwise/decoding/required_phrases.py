"""Phrases that must be in an output: bookkeeping over tokens, and a selection of beam search that includes them.

Hypotheses that contain more of what is required have lower probability than those that contain less, and would lose to
them. So the places of the beam are shared out in turn to hypotheses that lack 0 tokens, 1 token, 2 … (dynamic beam
allocation, Post and Vilar 2018, arXiv 1804.06609). Two rules guarantee the phrases: no end of sentence before they are
complete, and no token after which too little room is left for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from headwise.decoding.beam import Beams, Candidates, restrict
from headwise.decoding.options import Request, RequiredPhrase
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_filters import TokenFilters
from headwise.text.tokenizer import EOS, PAD

# Places beside the beam's own, for hypotheses at different stages. The same for every sentence, so that what a sentence
# becomes does not depend on what the others of its batch require.
MORE_PLACES = 8


class Requirements:
    """What one sentence must contain, and how far a run of tokens has come with it."""

    def __init__(self, request: Request) -> None:
        self.phrases, self.edges = request.phrases, request.edges
        self.prefix_length = len(request.prefix)
        spellings = [spelling for phrase in self.phrases for spelling in phrase.spellings]
        self._spelt = frozenset(token for spelling in spellings for token in spelling)
        self._firsts = frozenset(spelling[0] for spelling in spellings)

    def needed(self, tokens: Sequence[int]) -> int:
        """The most further tokens that it takes until every phrase is there; 0 is all are."""
        unmet, at = self._scan(tokens)
        return min(self._open(tokens, unmet, at).values(), default=_cost(unmet))

    def next_tokens(self, tokens: Sequence[int]) -> set[int]:
        """Tokens that begin a phrase or go on with one."""
        unmet, at = self._scan(tokens)
        starts = {
            spelling[0]
            for phrase in _ready(unmet)
            for spelling in phrase.spellings
            if self._may_begin(tokens, len(tokens), spelling)
        }
        return starts | set(self._open(tokens, unmet, at))

    def after_each(self, tokens: list[int], candidates: Sequence[int]) -> list[int]:
        """`needed` with each of these tokens added."""
        unmet, at = self._scan(tokens)
        cost = _cost(unmet)
        # A token of no phrase only loses what was begun; it can undo a phrase only if that ended just now.
        plain = at < len(tokens) or not tokens
        return [cost if plain and token not in self._spelt else self.needed([*tokens, token]) for token in candidates]

    def _scan(self, tokens: Sequence[int]) -> tuple[list[RequiredPhrase], int]:
        """Phrases that are not there yet, and where the last one that is ends."""
        unmet, at, end = list(self.phrases), 0, 0
        while at < len(tokens) and unmet:
            if tokens[at] not in self._firsts:
                at += 1
                continue
            ready = [(phrase, spelling) for phrase in _ready(unmet) for spelling in phrase.spellings]
            found = max(
                ((len(spelling), phrase) for phrase, spelling in ready if self._stands(tokens, at, phrase, spelling)),
                key=lambda pair: pair[0],
                default=None,
            )
            if found is None:
                at += 1
                continue
            at += found[0]
            end = at
            unmet.remove(found[1])
        return unmet, end

    def _open(self, tokens: Sequence[int], unmet: list[RequiredPhrase], after: int) -> dict[int, int]:
        """Phrases of which the last tokens are a beginning: the next token -> how many are needed altogether."""
        cost = _cost(unmet)
        found: dict[int, int] = {}
        for phrase in _ready(unmet):
            for spelling in phrase.spellings:
                for start in range(max(after, len(tokens) - len(spelling) + 1), len(tokens)):
                    if tokens[start] != spelling[0]:
                        continue
                    said = len(tokens) - start
                    if tuple(tokens[start:]) == spelling[:said] and self._may_begin(tokens, start, spelling):
                        needed = cost - phrase.cost + len(spelling) - said
                        found[spelling[said]] = min(needed, found.get(spelling[said], needed))
        return found

    def _stands(self, tokens: Sequence[int], at: int, phrase: RequiredPhrase, spelling: tuple[int, ...]) -> bool:
        end = at + len(spelling)
        if tuple(tokens[at:end]) != spelling or not self._may_begin(tokens, at, spelling):
            return False
        return not phrase.whole or end == len(tokens) or tokens[end] not in self.edges.continues

    def _may_begin(self, tokens: Sequence[int], at: int, spelling: tuple[int, ...]) -> bool:
        return at == 0 or spelling[0] not in self.edges.continues or tokens[at - 1] not in self.edges.unfinished


def _ready(unmet: Sequence[RequiredPhrase]) -> list[RequiredPhrase]:
    """Those that count if they come now: of the ordered ones only the first."""
    first = next((phrase for phrase in unmet if phrase.ordered), None)
    return [phrase for phrase in unmet if not phrase.ordered or phrase is first]


def _cost(phrases: Sequence[RequiredPhrase]) -> int:
    return sum(phrase.cost for phrase in phrases)


class _Option(NamedTuple):
    """A way to go on (`Candidates`), and how many tokens are still needed after it."""

    score: float
    parent: int
    token: int
    log_prob: float
    needed: int


class ConstrainedSelect:
    """A `Select` of beam search for sentences with required phrases."""

    def __init__(self, sources: Sources) -> None:
        self.requirements = [Requirements(request) for request in sources.requests]
        self.limits: list[int] = sources.limits.tolist()

    def __call__(self, log_probs: Tensor, beams: Beams, filters: TokenFilters) -> Candidates:
        options: list[list[_Option]] = [[] for _ in beams.sentences]
        said, sentences = beams.tokens.tolist(), beams.row_sentences().tolist()
        scores = beams.scores.ravel().tolist()
        rows = [row for row, score in enumerate(scores) if score > -torch.inf]
        # What is required may come even where an option forbids it, so its log-probability is taken first.
        required = {row: self._required(log_probs[row], sentences[row], said[row]) for row in rows}
        count = min(beams.beam + 1, log_probs.size(1))
        highest, tokens = (part.tolist() for part in restrict(log_probs, beams, filters).topk(count, dim=-1))
        for row in rows:
            follow = dict(zip(tokens[row], highest[row], strict=True)) | required[row]
            place, parent = divmod(row, beams.width)
            options[place] += self._options(sentences[row], said[row], parent, scores[row], follow)
        return _candidates([_deal(each, beams.beam) for each in options], 2 * beams.beam)

    def _required(self, log_probs: Tensor, sentence: int, said: list[int]) -> dict[int, float]:
        """Tokens that bring a hypothesis nearer to what is required, and their log-probabilities."""
        requirements = self.requirements[sentence]
        if len(said) < requirements.prefix_length:
            return {}
        tokens = sorted(requirements.next_tokens(said))
        return dict(zip(tokens, log_probs[tokens].tolist(), strict=True)) if tokens else {}

    def _options(
        self, sentence: int, said: list[int], parent: int, score: float, follow: dict[int, float]
    ) -> list[_Option]:
        """Continuations of a hypothesis that leave room for what is still required."""
        requirements, room = self.requirements[sentence], self.limits[sentence] - len(said) - 1
        needed = dict(zip(follow, requirements.after_each(said, list(follow)), strict=True))
        needed[EOS] = requirements.needed(said)
        return [
            _Option(score + log_prob, parent, token, log_prob, needed[token])
            for token, log_prob in follow.items()
            if log_prob > -torch.inf and needed[token] <= (0 if token == EOS else room)
        ]


def _deal(options: list[_Option], beam: int) -> list[_Option]:
    """The beam's places in turn to the best of those that lack 0, 1, 2 … tokens.

    Ends of sentence that are among the first `beam` come first, then `beam` others, best first.
    """
    options = sorted(options, key=lambda option: -option.score)
    banks: dict[int, list[_Option]] = {}
    for option in options:
        banks.setdefault(option.needed, []).append(option)
    dealt: list[_Option] = []
    depth = 0
    while len(dealt) < len(options):
        dealt += [bank[depth] for _, bank in sorted(banks.items()) if depth < len(bank)]
        depth += 1
    ends = [option for option in dealt[:beam] if option.token == EOS]
    others = [option for option in dealt if option.token != EOS][:beam]
    return ends + sorted(others, key=lambda option: -option.score)


def _candidates(dealt: list[list[_Option]], width: int) -> Candidates:
    shape = len(dealt), width
    sums, log_probs = np.full(shape, -np.inf), np.zeros(shape)
    rows, tokens = np.zeros(shape, dtype=np.int64), np.full(shape, PAD)
    for place, options in enumerate(dealt):
        for slot, option in enumerate(options):
            sums[place, slot], rows[place, slot], tokens[place, slot], log_probs[place, slot], _ = option
    return Candidates(sums, rows, tokens, log_probs)
