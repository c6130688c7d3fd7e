"""Ranks heads by the attention that one word of a text pays to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwise.errors import UsageError
from headwise.files import shortened
from headwise.look.capture import Look


@dataclass(frozen=True)
class HeadWeight:
    """How much of a word's attention goes to another in one head, both counted from 1; and where most of it goes."""

    layer: int
    head: int
    weight: float
    favourite: str


def rank_heads(look: Look, first: str, second: str) -> list[HeadWeight]:
    """All heads by the weight from word `first` to word `second`, largest first.

    Of a word in several pieces, weights to its pieces are added and weights from its pieces averaged.
    """
    kind = next((kind for kind in ("encoder", "causal") if kind in look.attention), None)
    reading = look.source if look.source is not None else look.target
    if kind is None:
        raise UsageError("this model has no attention between the words of one text")
    groups, words = reading.groups, reading.words
    rows, columns = (groups[_place(words, word)] for word in (first, second))
    found = []
    for layer, heads in enumerate(look.attention[kind], start=1):
        for head, weights in enumerate(heads, start=1):
            paid = weights[list(rows)].mean(axis=0)  # (S,)
            by_word = [float(paid[list(group)].sum()) for group in groups]
            favourite = words[max(range(len(words)), key=by_word.__getitem__)]
            found.append(HeadWeight(layer, head, float(paid[list(columns)].sum()), favourite))
    return sorted(found, key=lambda one: -one.weight)


def _place(words: Sequence[str], word: str) -> int:
    wanted = word.casefold().strip()
    for place, other in enumerate(words):
        if other.casefold().strip(" .,;:!?\"'") == wanted:
            return place
    raise UsageError(f"there is no word '{shortened(word)}' in the text; it has {shortened(', '.join(words), 200)}")
