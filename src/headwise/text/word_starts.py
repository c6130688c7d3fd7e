"""Which tokens of a vocabulary begin a word: what whole-word masking needs to know."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from numpy.typing import NDArray

from headwise.text.scripts import LETTERS_WITHOUT_SPACES
from headwise.text.tokenizer import Tokenizer

_SPACES = (" ", "▁", "Ġ")  # before a word, in pieces of ours, of SentencePiece and of GPT-2's kind
_SPACELESS = re.compile(f"[{LETTERS_WITHOUT_SPACES}]")
_CONTINUES = "##"  # before the rest of a word, in WordPiece


def word_starts(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """For each token whether a word begins with it, (V,). A character of a script without spaces is a word."""
    pieces = tokenizer.vocabulary
    kind = tokenizer.parts["model"]
    if kind["type"] == "WordPiece":
        prefix = kind.get("continuing_subword_prefix") or _CONTINUES
        return np.array([not piece.startswith(prefix) for piece in pieces])
    if kind["type"] == "WordLevel":
        return np.ones(len(pieces), dtype=bool)
    return np.array([_starts(piece) for piece in pieces])


def _starts(piece: str) -> bool:
    """Not a letter or mark that continues the word before it, and not a single byte of a character."""
    if not piece or piece.startswith("<0x"):
        return False
    first = piece[0]
    return first in _SPACES or bool(_SPACELESS.match(first)) or unicodedata.category(first)[0] not in "LM"
