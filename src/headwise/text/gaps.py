"""Text with gaps: `The capital of France is [MASK].` as ids, with an id of the caller's choice for each gap."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwise.text.tokenizer import Tokenizer

GAP = re.compile(r"\[MASK\]|<mask>|<extra_id_\d+>")


def count_gaps(text: str) -> int:
    return len(GAP.findall(text))


def encode_with_gaps(tokenizer: Tokenizer, text: str, fillers: Sequence[int]) -> list[int]:
    """The ids of the text, without begin and end of sentence; `fillers` are the ids of its gaps, in order.

    A gap stands for a token with the space before it, where tokens have their space. What follows a gap is split as it
    is inside of a text.
    """
    first, *rest = GAP.split(text)
    ids = tokenizer.encode(_before_gap(tokenizer, first)) if first.strip() or not rest else []
    for number, (filler, part) in enumerate(zip(fillers, rest, strict=True), start=1):
        ids += [filler, *_inside(tokenizer, part if number == len(rest) else _before_gap(tokenizer, part))]
    return ids


def continues_word(tokenizer: Tokenizer, token: int) -> bool:
    """Whether a token is the rest of the word before it: without a space, where tokens have their space."""
    piece = tokenizer.vocabulary[token]
    if tokenizer.kind in ("bpe", "unigram"):
        return not piece.startswith((" ", "▁", "Ġ"))
    return piece.startswith("##")


def fill_gaps(text: str, words: Sequence[str], continued: Sequence[bool]) -> str:
    """The text with words in its gaps; one that continues the word before it takes the space before the gap."""
    first, *rest = GAP.split(text)
    for word, continues, part in zip(words, continued, rest, strict=True):
        first = (first.removesuffix(" ") if continues else first) + word + part
    return first


def _before_gap(tokenizer: Tokenizer, part: str) -> str:
    return part.removesuffix(" ") if tokenizer.kind in ("bpe", "unigram") else part


def _inside(tokenizer: Tokenizer, part: str) -> list[int]:
    """The ids of a text that does not begin where a tokenizer believes texts to begin: after a line break."""
    if not part:
        return []
    start, whole = tokenizer.encode("\n"), tokenizer.encode("\n" + part)
    return whole[len(start) :] if whole[: len(start)] == start else tokenizer.encode(part)
