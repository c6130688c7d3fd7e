"""Readable labels for tokens, and the grouping of tokens into words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headwise.text.scripts import LETTERS_WITHOUT_SPACES
from headwise.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer

# The brackets set them apart from text: no user input becomes one of these.
SPECIAL = {PAD: "⟨padding⟩", UNK: "⟨unknown⟩", BOS: "⟨start⟩", EOS: "⟨end⟩"}

_CONTINUES = "##"  # before the rest of a word, in WordPiece
_BYTE = re.compile(r"<0x([0-9A-F]{2})>\Z")
_SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_WHITE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "↵", "\u3000": "␣"}
_JOINERS = "\u200c\u200d"  # invisible, but they change how their neighbours are drawn
# Scripts without spaces between words, and their punctuation: there each token counts as a word.
_UNSPACED = re.compile(f"[\u3000-\u303f\uff01-\uff65{LETTERS_WITHOUT_SPACES}]")


@dataclass(frozen=True)
class Token:
    """One token: its label, and the text that it adds (none for ⟨start⟩ and for later bytes of a character)."""

    label: str
    text: str
    special: bool = False
    inside: bool = False  # a later byte of a character that an earlier token begins


def read_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Token]:
    """Labels each id. The bytes of a character are labelled with the character and a number: €₁ €₂ €₃."""
    tokens: list[Token] = []
    run: list[int] = []
    for number, piece in zip(ids, tokenizer.pieces(ids), strict=True):
        byte = _BYTE.match(piece)
        if byte is not None:
            run.append(int(byte[1], 16))
            continue
        tokens += _read_bytes(bytes(run))
        run = []
        if number in SPECIAL:
            tokens.append(Token(SPECIAL[number], "", special=True))
        else:
            text = _with_its_space(piece) if tokenizer.kind in ("word", "wordpiece") else piece.replace("▁", " ")
            tokens.append(Token(label(piece.replace("▁", " ")), text))
    return tokens + _read_bytes(bytes(run))


def _with_its_space(piece: str) -> str:
    """The text of a word, or of a piece of WordPiece, which marks the rest of a word and not its beginning."""
    if piece.startswith(_CONTINUES):
        return piece.removeprefix(_CONTINUES)
    return piece if _UNSPACED.match(piece) else f" {piece}"


def _read_bytes(run: bytes) -> list[Token]:
    tokens: list[Token] = []
    while run:
        size = _character_size(run)
        if size == 0:
            tokens.append(Token(f"<0x{run[0]:02X}>", "\ufffd"))
            run = run[1:]
            continue
        text, run = run[:size].decode(), run[size:]
        numbers = [""] if size == 1 else [str(index).translate(_SUBSCRIPT) for index in range(1, size + 1)]
        tokens += [Token(label(text) + n, "" if i else text, inside=i > 0) for i, n in enumerate(numbers)]
    return tokens


def _character_size(run: bytes) -> int:
    """Returns the number of bytes of the UTF-8 character at the start, 0 if it is invalid."""
    for size in range(1, min(4, len(run)) + 1):
        try:
            run[:size].decode()
        except UnicodeDecodeError:
            continue
        return size
    return 0


def label(text: str) -> str:
    """Makes text displayable on its own: no outer spaces, nothing invisible, no combining mark without a base."""
    shown = text.strip(" ") or text
    shown = "".join(_visible(character, alone=not shown.strip()) for character in shown)
    if shown and unicodedata.category(shown[0])[0] == "M":
        shown = "◌" + shown
    return unicodedata.normalize("NFC", shown)


def _visible(character: str, alone: bool) -> str:
    if character in _WHITE and (alone or character != " "):
        return _WHITE[character]
    # Control and format characters, such as an override of the writing direction, would affect the whole page.
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co") and character not in _JOINERS:
        return f"U+{ord(character):04X}"
    return character


def word_groups(tokens: Sequence[Token], *, every: bool = False) -> list[list[int]]:
    """Groups the indices of tokens by word; in scripts without spaces every token is a word.

    In other scripts word i is `text.split()[i]`. Special tokens are words of their own. `every`: each token is a word.
    """
    groups: list[list[int]] = []
    seen = ""  # text of the last group
    for index, token in enumerate(tokens):
        if groups and not token.special and (token.inside or (not every and _continues(seen, token.text))):
            groups[-1].append(index)
            seen += token.text
        else:
            groups.append([index])
            seen = "⟩ " if token.special else token.text  # nothing continues a special token
    return _join_trailing_space(tokens, groups)


def _continues(seen: str, text: str) -> bool:
    if not seen.strip():
        return True  # only white space so far: the word is still to come
    if not text or seen[-1].isspace() or text[0].isspace():
        return not text
    return not (_UNSPACED.match(seen[-1]) or _UNSPACED.match(text[0])) or unicodedata.category(text[0])[0] == "M"


def _join_trailing_space(tokens: Sequence[Token], groups: list[list[int]]) -> list[list[int]]:
    """Joins white space at the end to the last word, so that it does not count as a word."""
    joined: list[list[int]] = []
    for group in groups:
        blank = not any(tokens[i].special or tokens[i].text.strip() or tokens[i].inside for i in group)
        if blank and joined and not tokens[joined[-1][0]].special:
            joined[-1] = joined[-1] + group
        else:
            joined.append(group)
    return joined


def group_label(tokens: Sequence[Token], group: Iterable[int]) -> str:
    """Returns the word that a group of tokens spells."""
    members = [tokens[index] for index in group]
    return members[0].label if members[0].special else label("".join(token.text for token in members).strip())


@dataclass(frozen=True)
class Reading:
    """A text that a model read or wrote: its tokens, and their indices grouped by word."""

    tokens: Sequence[Token]
    groups: Sequence[Sequence[int]]
    text: str = ""  # the text as the tokenizer decodes it

    @classmethod
    def of(cls, tokenizer: Tokenizer, ids: Sequence[int]) -> Reading:
        tokens = read_tokens(tokenizer, ids)
        return cls(tokens, word_groups(tokens, every=tokenizer.kind == "word"), tokenizer.decode(ids).strip())

    @property
    def labels(self) -> list[str]:
        return [token.label for token in self.tokens]

    @property
    def words(self) -> list[str]:
        return [group_label(self.tokens, group) for group in self.groups]
