"""Lexically constrained beam search: outputs must contain given phrases.

Hypotheses that contain more of the required phrases tend to have lower probability and would be pruned. So the slots of
the beam are distributed in turn to hypotheses that lack 0 tokens, 1 token, 2 … (dynamic beam allocation, Post and Vilar
2018, arXiv 1804.06609). Two rules guarantee the phrases: no end of sentence before they are complete, and no token
after which there is too little room left for them.
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

# Additional slots of the beam for hypotheses that lack different numbers of tokens. The number is the same for every
# sentence, so that a translation does not depend on the phrases that others in its batch require.
EXTRA_SLOTS = 8


class Requirements:
    """Tracks how much of a sentence's required phrases a sequence of tokens contains."""

    def __init__(self, request: Request) -> None:
        self.phrases, self.edges = request.phrases, request.edges
        self.prefix_length = len(request.prefix)
        spellings = [spelling for phrase in self.phrases for spelling in phrase.spellings]
        self._spelt = frozenset(token for spelling in spellings for token in spelling)
        self._firsts = frozenset(spelling[0] for spelling in spellings)

    def needed(self, tokens: Sequence[int]) -> int:
        """Returns the number of further tokens that suffice to complete every phrase; 0 if all are complete."""
        unmet, at = self._scan(tokens)
        return min(self._open(tokens, unmet, at).values(), default=_cost(unmet))

    def next_tokens(self, tokens: Sequence[int]) -> set[int]:
        """Returns the tokens that begin or continue a phrase."""
        unmet, at = self._scan(tokens)
        starts = {
            spelling[0]
            for phrase in _ready(unmet)
            for spelling in phrase.spellings
            if self._may_begin(tokens, len(tokens), spelling)
        }
        return starts | set(self._open(tokens, unmet, at))

    def after_each(self, tokens: list[int], candidates: Sequence[int]) -> list[int]:
        """Returns `needed` for the tokens followed by each of the candidates."""
        unmet, at = self._scan(tokens)
        cost = _cost(unmet)
        # A token that is in no phrase only breaks off a phrase in progress; it can undo a complete phrase only directly
        # after its end.
        separate = at < len(tokens) or not tokens
        return [
            cost if separate and token not in self._spelt else self.needed([*tokens, token]) for token in candidates
        ]

    def _scan(self, tokens: Sequence[int]) -> tuple[list[RequiredPhrase], int]:
        """Returns the phrases that are still missing, and where the last complete one ends."""
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
        """Finds phrases that the last tokens begin; maps the next token of each to the number of tokens needed."""
        cost = _cost(unmet)
        found: dict[int, int] = {}
        for phrase in _ready(unmet):
            for spelling in phrase.spellings:
                for start in range(max(after, len(tokens) - len(spelling) + 1), len(tokens)):
                    if tokens[start] != spelling[0]:
                        continue
                    done = len(tokens) - start
                    if tuple(tokens[start:]) == spelling[:done] and self._may_begin(tokens, start, spelling):
                        needed = cost - phrase.cost + len(spelling) - done
                        found[spelling[done]] = min(needed, found.get(spelling[done], needed))
        return found

    def _stands(self, tokens: Sequence[int], at: int, phrase: RequiredPhrase, spelling: tuple[int, ...]) -> bool:
        end = at + len(spelling)
        if tuple(tokens[at:end]) != spelling or not self._may_begin(tokens, at, spelling):
            return False
        return not phrase.whole or end == len(tokens) or tokens[end] not in self.edges.continues

    def _may_begin(self, tokens: Sequence[int], at: int, spelling: tuple[int, ...]) -> bool:
        return at == 0 or spelling[0] not in self.edges.continues or tokens[at - 1] not in self.edges.unfinished


def _ready(unmet: Sequence[RequiredPhrase]) -> list[RequiredPhrase]:
    """Selects the phrases that may come next: of the ordered ones only the first."""
    first = next((phrase for phrase in unmet if phrase.ordered), None)
    return [phrase for phrase in unmet if not phrase.ordered or phrase is first]


def _cost(phrases: Sequence[RequiredPhrase]) -> int:
    return sum(phrase.cost for phrase in phrases)


class _Option(NamedTuple):
    """A continuation (see `Candidates`), and the number of tokens that are still needed after it."""

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
        written, sentences = beams.tokens.tolist(), beams.row_sentences().tolist()
        scores = beams.scores.ravel().tolist()
        rows = [row for row, score in enumerate(scores) if score > -torch.inf]
        # Required tokens are allowed even where a filter forbids them, so their log-probabilities are read first.
        required = {row: self._required(log_probs[row], sentences[row], written[row]) for row in rows}
        count = min(beams.beam + 1, log_probs.size(1))
        highest, tokens = (part.tolist() for part in restrict(log_probs, beams, filters).topk(count, dim=-1))
        for row in rows:
            follow = dict(zip(tokens[row], highest[row], strict=True)) | required[row]
            place, parent = divmod(row, beams.width)
            options[place] += self._options(sentences[row], written[row], parent, scores[row], follow)
        return _candidates([_allocate(each, beams.beam) for each in options], 2 * beams.beam)

    def _required(self, log_probs: Tensor, sentence: int, written: list[int]) -> dict[int, float]:
        """Returns the tokens that begin or continue a required phrase, and their log-probabilities."""
        requirements = self.requirements[sentence]
        if len(written) < requirements.prefix_length:
            return {}
        tokens = sorted(requirements.next_tokens(written))
        return dict(zip(tokens, log_probs[tokens].tolist(), strict=True)) if tokens else {}

    def _options(
        self, sentence: int, written: list[int], parent: int, score: float, follow: dict[int, float]
    ) -> list[_Option]:
        """Returns the continuations of a hypothesis that leave room for what is still required."""
        requirements, room = self.requirements[sentence], self.limits[sentence] - len(written) - 1
        needed = dict(zip(follow, requirements.after_each(written, list(follow)), strict=True))
        needed[EOS] = requirements.needed(written)
        return [
            _Option(score + log_prob, parent, token, log_prob, needed[token])
            for token, log_prob in follow.items()
            if log_prob > -torch.inf and needed[token] <= (0 if token == EOS else room)
        ]


def _allocate(options: list[_Option], beam: int) -> list[_Option]:
    """Gives the beam's slots in turn to the best continuations that lack 0, 1, 2 … tokens.

    Returns the ends of sentence among the first `beam`, then `beam` others, best first.
    """
    options = sorted(options, key=lambda option: -option.score)
    banks: dict[int, list[_Option]] = {}
    for option in options:
        banks.setdefault(option.needed, []).append(option)
    ordered: list[_Option] = []
    depth = 0
    while len(ordered) < len(options):
        ordered += [bank[depth] for _, bank in sorted(banks.items()) if depth < len(bank)]
        depth += 1
    ends = [option for option in ordered[:beam] if option.token == EOS]
    others = [option for option in ordered if option.token != EOS][:beam]
    return ends + sorted(others, key=lambda option: -option.score)


def _candidates(allocated: list[list[_Option]], width: int) -> Candidates:
    shape = len(allocated), width
    sums, log_probs = np.full(shape, -np.inf), np.zeros(shape)
    rows, tokens = np.zeros(shape, dtype=np.int64), np.full(shape, PAD)
    for place, options in enumerate(allocated):
        for slot, option in enumerate(options):
            sums[place, slot], rows[place, slot], tokens[place, slot], log_probs[place, slot], _ = option
    return Candidates(sums, rows, tokens, log_probs)
