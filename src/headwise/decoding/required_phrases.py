"""Lexically constrained beam search: outputs must contain given phrases.

Hypotheses that contain more of the required phrases tend to have lower probability and would be pruned. So the slots of
the beam are distributed in turn to hypotheses that lack 0 tokens, 1 token, 2 … (dynamic beam allocation, Post and Vilar
2018, arXiv 1804.06609). Two rules guarantee the phrases: no end of sentence before they are complete, and no token
after which there is too little room left for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from headwise.cancellation import check_cancelled
from headwise.decoding.beam import Beams, Candidates, restrict
from headwise.decoding.requirements import Requirements
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_filters import TokenFilters
from headwise.text.tokenizer import EOS, PAD

# Additional slots of the beam for hypotheses that lack different numbers of tokens. The number is the same for every
# sentence, so that a translation does not depend on the phrases that others in its batch require.
EXTRA_SLOTS = 8


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
            check_cancelled()  # with many phrases a single step takes long
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
