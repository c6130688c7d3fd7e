"""Puts the terms of a glossary into a translation, each in place of the word that translated its source term.

The word is found by cross-attention: the decoder looked at the source term while it wrote it. Does not import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from headwise.decoding.options import Edges, Request, RequiredPhrase
from headwise.decoding.requirements import Requirements

if TYPE_CHECKING:
    from headwise.decoding.engine import Floats

NEARLY = 0.6  # of the most attention that a word has on the source term
LEAST_ATTENTION = 0.15  # of a word, on its source term: with less, the word hardly translates it


def with_terms(tokens: Sequence[int], request: Request, weights: Floats) -> tuple[int, ...] | None:
    """The tokens with every phrase that translates part of the source; None if there is no place for one of them.

    `weights` (T, S) are the attention of each token to the source.
    """
    spans: dict[range, RequiredPhrase] = {}
    words = words_of(tokens, request.edges)
    for phrase in request.phrases:
        if not phrase.translates or not Requirements(Request((), (phrase,), request.edges)).needed(tokens):
            continue
        for source in phrase.translates:
            word = word_for(source, words, weights)
            if word is None or spans.get(word, phrase) != phrase:
                return None
            spans[word] = phrase
    new = list(tokens)
    for word in sorted(spans, key=lambda span: -span.start):
        new[word.start : word.stop] = _spelling(spans[word], tokens[word.start], request.edges)
    return tuple(new) if not Requirements(request).needed(new) else None


def words_of(tokens: Sequence[int], edges: Edges) -> list[range]:
    """Where each word begins and ends; in a script without spaces each token is a word."""
    starts = [
        place
        for place, token in enumerate(tokens)
        if place == 0 or token not in edges.continues or tokens[place - 1] not in edges.unfinished
    ]
    return [range(start, end) for start, end in pairwise([*starts, len(tokens)])]


def word_for(source: tuple[int, int], words: Sequence[range], weights: Floats) -> range | None:
    """The last of the words whose tokens attend most to the source tokens from and to `source`."""
    if not words:
        return None
    mass = weights[:, source[0] : source[1]].sum(axis=1)  # (T,)
    each = [float(mass[word.start : word.stop].mean()) for word in words]
    # An article attends to its noun nearly as much as the noun itself, and comes before it.
    last = max(number for number, value in enumerate(each) if value >= NEARLY * max(each))
    return words[last] if each[last] >= LEAST_ATTENTION else None


def _spelling(phrase: RequiredPhrase, replaced: int, edges: Edges) -> tuple[int, ...]:
    """With a space before it where the word that it replaces had one."""
    bare = replaced in edges.continues
    fitting = (spelling for spelling in phrase.spellings if (spelling[0] in edges.continues) == bare)
    return next(fitting, phrase.spellings[0])
