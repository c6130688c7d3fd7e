"""Encodes text word by word: the ids of each word are computed once and then looked up.

A new word begins at each space. For tokenizers that split text as `vocabulary.in_runs` does, the ids of a text are
those of its words, one after another: a run has a space only at its beginning, so no piece reaches beyond a word, and
no Unicode normalisation combines a space with its neighbours.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from itertools import chain

import tokenizers
from tokenizers import models

from headwise.text.vocabulary import NORMALISATIONS, RESERVED, in_runs

_MAX_WORDS = 100_000
_LONGEST_WORD = 24  # characters: longer ones, such as sentences in scripts without spaces, rarely recur
_FEW_WORDS = 16  # faster one by one: for a batch the library starts a thread pool


def splits_at_spaces(library: tokenizers.Tokenizer) -> bool:
    """Tells whether a tokenizer splits and joins text like those that Headwise trains."""
    ours = (in_runs(models.BPE(), normalisation) for normalisation in NORMALISATIONS)
    return not library.get_added_tokens_decoder() and _steps(library) in map(_steps, ours)


class WordCache:
    """Caches the ids of the words seen so far, for one vocabulary. Several threads may share it."""

    def __init__(self, library: tokenizers.Tokenizer, pieces: Sequence[str]) -> None:
        self._library, self._pieces = library, pieces
        two_spaces = library.encode(" ", add_special_tokens=False).ids  # the library puts one more before any text
        self._space = two_spaces[: len(two_spaces) // 2]
        self._known = {"": self._space}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        if len(self._known) > _MAX_WORDS:
            self._known = {"": self._space}
        known = self._known
        split = [text.split(" ") if text != "" else [] for text in texts]
        try:
            return _look_up(split, known)  # usually all words are known
        except KeyError:
            pass
        new = [word for word in {word for words in split for word in words} if word not in known]
        rare: dict[str, list[int]] = {}
        for word, encoding in zip(new, self._encodings(new), strict=True):
            (known if len(word) <= _LONGEST_WORD else rare)[word] = encoding.ids
        return _look_up(split, ChainMap(known, rare) if rare else known)

    def decode(self, ids: Sequence[int]) -> str | None:
        """Joins the pieces to text; None if there are special tokens or bytes, which need more than joining."""
        if min(ids, default=RESERVED) < RESERVED:
            return None
        try:
            return "".join(map(self._pieces.__getitem__, ids)).removeprefix(" ")
        except IndexError:
            return None

    def _encodings(self, words: list[str]) -> list[tokenizers.Encoding]:
        if len(words) > _FEW_WORDS:
            return self._library.encode_batch_fast(words, add_special_tokens=False)
        return [self._library.encode(word, add_special_tokens=False) for word in words]


def _look_up(split: list[list[str]], known: Mapping[str, list[int]]) -> list[list[int]]:
    ids_of = known.__getitem__
    return [list(chain.from_iterable(map(ids_of, words))) for words in split]


def _steps(library: tokenizers.Tokenizer) -> list[bytes]:
    """Returns the steps before and after the model (normalizer, pre-tokenizer, decoder) as JSON."""
    steps = library.normalizer, library.pre_tokenizer, library.decoder
    return [b"" if step is None else step.__getstate__() for step in steps]
