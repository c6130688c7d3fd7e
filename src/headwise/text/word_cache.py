"""Text to ids word by word: what a word becomes is worked out once and then looked up.

A word here begins at each space. For tokenizers that cut as `vocabulary.in_runs` does, the ids of a text are those of
its words, one after the other: a run has a space at its beginning or none, so no piece reaches beyond a word, and no
normal form joins a space with what stands before or after it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from itertools import chain

import tokenizers
from tokenizers import models

from headwise.text.vocabulary import NORMALISATIONS, RESERVED, in_runs

_MOST_WORDS = 100_000
_LONGEST_WORD = 24  # characters: longer ones, such as sentences in scripts without spaces, hardly come again
_FEW_WORDS = 16  # take less time one by one: for a batch the library wakes a team of threads


def cut_at_spaces(library: tokenizers.Tokenizer) -> bool:
    """Whether it cuts text, and joins it, as the tokenizers that are trained here."""
    ours = (in_runs(models.BPE(), normalisation) for normalisation in NORMALISATIONS)
    return not library.get_added_tokens_decoder() and _steps(library) in map(_steps, ours)


class Words:
    """Those of one vocabulary that were met so far. Several threads may use it."""

    def __init__(self, library: tokenizers.Tokenizer, pieces: Sequence[str]) -> None:
        self._library, self._pieces = library, pieces
        two_spaces = library.encode(" ", add_special_tokens=False).ids  # one more is put before any text
        self._space = two_spaces[: len(two_spaces) // 2]
        self._known = {"": self._space}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        if len(self._known) > _MOST_WORDS:
            self._known = {"": self._space}
        known = self._known
        cut = [text.split(" ") if text != "" else [] for text in texts]
        try:
            return _looked_up(cut, known)  # as a rule all are known
        except KeyError:
            pass
        new = [word for word in {word for words in cut for word in words} if word not in known]
        rare: dict[str, list[int]] = {}
        for word, encoding in zip(new, self._encodings(new), strict=True):
            (known if len(word) <= _LONGEST_WORD else rare)[word] = encoding.ids
        return _looked_up(cut, ChainMap(known, rare) if rare else known)

    def decode(self, ids: Sequence[int]) -> str | None:
        """The pieces as text. None where special tokens or bytes are among the ids, which are not just joined."""
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


def _looked_up(cut: list[list[str]], known: Mapping[str, list[int]]) -> list[list[int]]:
    ids_of = known.__getitem__
    return [list(chain.from_iterable(map(ids_of, words))) for words in cut]


def _steps(library: tokenizers.Tokenizer) -> list[bytes]:
    """What is done to text before and after the pieces, as JSON."""
    steps = library.normalizer, library.pre_tokenizer, library.decoder
    return [b"" if step is None else step.__getstate__() for step in steps]
