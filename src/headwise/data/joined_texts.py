"""One or two texts as one sequence of an encoder: begin, text, end, and perhaps a second text and its end. No torch.

RoBERTa and its relatives have two ends between the texts of a pair, all others one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headwise.text.ragged import Ragged, spans
from headwise.text.vocabulary import BOS, EOS


def joined(texts: Sequence[Ragged], longest: int | None = None, ends: int = 1) -> Ragged:
    """One or two texts per row as one sequence, with `ends` of sentence between them, without begin and last end.

    Of a row that is longer than `longest` tokens, with its special tokens, the longer text is cut at its end.
    """
    lengths = [np.asarray(text.lengths, dtype=np.int64) for text in texts]
    room = None if longest is None else max(longest - specials(len(texts), ends), 0)
    kept = lengths if room is None else _fitting(lengths, room)
    starts = [np.cumsum(length) - length for length in lengths]
    tokens = [text.tokens[spans(start, keep)] for text, start, keep in zip(texts, starts, kept, strict=True)]
    if len(texts) == 1:
        return Ragged(tokens[0], kept[0])
    first, second = kept
    rows = np.arange(len(first))
    # The tokens of both texts and the ends between them, each with its row: a stable sort joins them.
    between = np.repeat(rows, ends)
    order = np.argsort(np.concatenate((np.repeat(rows, first), between, np.repeat(rows, second))), kind="stable")
    flat = np.concatenate((tokens[0].astype(np.int64), np.full_like(between, EOS), tokens[1].astype(np.int64)))
    return Ragged(flat[order], first + second + ends)


def encoded(texts: Sequence[Ragged], longest: int | None = None, ends: int = 1) -> list[list[int]]:
    """Each row's ids with begin and end of sentence."""
    return [[BOS, *ids, EOS] for ids in joined(texts, longest, ends).sentences()]


def specials(texts: int, ends: int = 1) -> int:
    """Special tokens of an input with so many texts: a begin, `ends` between two texts, and an end."""
    return 2 + ends * (texts - 1)


def _fitting(lengths: list[NDArray[np.int64]], room: int) -> list[NDArray[np.int64]]:
    """The lengths to keep, so that a row has at most `room` tokens: of two texts the longer one gives way first."""
    if len(lengths) == 1:
        return [np.minimum(lengths[0], room)]
    first, second = lengths
    half = room // 2
    first_kept = np.minimum(first, np.maximum(room - second, room - half))
    return [first_kept, np.minimum(second, room - first_kept)]
