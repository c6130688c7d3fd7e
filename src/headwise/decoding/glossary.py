"""Finds what a translation must contain: the target terms of a glossary, and protected spans of the source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from headwise.decoding.options import Edges, RequiredPhrase
from headwise.errors import UsageError
from headwise.text.scripts import is_spaceless
from headwise.text.tokenizer import BOS, Tokenizer
from headwise.text.vocabulary import BYTES

# Spans that `protect` keeps: placeholders, tags, addresses, numbers. The first alternative that matches wins.
_PROTECTED = re.compile(
    r"""
      \{\{[^{}\s]+\}\} | \$?\{[^{}\s]*\} | %(?:\(\w+\))?[sdif] | %\w+%      # {{name}}, {name}, ${name}, %s, %(name)d
    | </?[A-Za-z][^<>]*> | <!--(?:(?!<!--).)*?--> | &(?:\w+|\#\d+);                     # <b>, </b>, <br/>, &amp;
    | (?:https?://|www\.)[^\s<>"]*[^\s<>".,;:!?)\]'}]                       # a URL, without the punctuation after it
    | (?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+                           # e-mail
    | (?<![\w.])[+-]?\d+(?:[.,:/’']\d+)*(?![\w])%?                          # 3, 1,000.50, 12:30, 50%
    """,
    re.VERBOSE | re.DOTALL,
)


class Term(NamedTuple):
    """Text that must be in the translation."""

    text: str
    apart: bool = False  # must follow a space or start the text
    whole: bool = True  # must not be followed by a letter or digit
    ordered: bool = False  # for tags: must come after all earlier tags
    spans: tuple[tuple[int, int], ...] = ()  # the characters of the source, from and to, that it translates


def protected_spans(text: str) -> list[Term]:
    """Returns the protected spans in order, each as often as it occurs, with the spacing that it has in the text."""
    return [
        Term(
            match.group(),
            apart=not text[: match.start()] or text[match.start() - 1].isspace(),
            whole=not _wordlike(text[match.end() : match.end() + 1]),
            ordered=match.group().startswith("<"),
        )
        for match in _PROTECTED.finditer(text)
    ]


def glossary_terms(text: str, glossary: Mapping[str, str]) -> list[Term]:
    """Returns the target terms whose source term occurs in the text as a whole word, once each.

    A source term in lower case matches in any case. Where terms overlap, the longest is taken.
    """
    if not glossary:
        return []
    for source, target in glossary.items():
        if not source.strip() or not target.strip():
            raise UsageError(f"the glossary has an empty term: {source!r} -> {target!r}; give both sides")
    wanted: dict[str, list[tuple[int, int]]] = {}
    taken = bytearray(len(text))
    for source in sorted(glossary, key=len, reverse=True):
        for match in _whole_word(source.strip()).finditer(text):
            if not any(taken[match.start() : match.end()]):
                taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
                wanted.setdefault(glossary[source].strip(), []).append(match.span())
    return [Term(term, whole=_wordlike(term[-1]), spans=tuple(spans)) for term, spans in wanted.items()]


@lru_cache(1024)  # a server gets glossaries from many clients
def _whole_word(term: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if _wordlike(term[0]) else ""
    after = r"(?!\w)" if _wordlike(term[-1]) else ""
    flags = re.IGNORECASE if term == term.lower() else 0
    return re.compile(before + re.escape(term) + after, flags)


def _wordlike(character: str) -> bool:
    """Whether this is a letter or digit of a script that puts spaces between words."""
    return character.isalnum() and not is_spaceless(character)


class PhraseMaker:
    """Encodes required text as tokens of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.edges = _edges(tokenizer)
        # A line break never merges with the text after it, so a text after one is encoded without a leading space.
        self._break = tokenizer.encode("\n")

    def phrase(self, term: Term) -> RequiredPhrase:
        text = term.text
        # bpe and unigram put a space before a text by themselves, and words need none; the others get one here.
        spaced = tuple(self.tokenizer.encode(f" {text}" if self.tokenizer.kind in ("char", "byte") else text))
        comes_back = self.tokenizer.decode(spaced).strip() == self.tokenizer.normalise(text).strip()
        if self.tokenizer.unk in spaced or not comes_back:
            raise UsageError(f"this model cannot write {text!r}: some of it is not in its vocabulary")
        bare = () if term.apart else self._bare(text)
        spellings = (bare, spaced) if is_spaceless(text[0]) else (spaced, bare)
        return RequiredPhrase(tuple(dict.fromkeys(filter(None, spellings))), whole=term.whole, ordered=term.ordered)

    def _bare(self, text: str) -> tuple[int, ...]:
        if self.tokenizer.kind == "word":
            return ()
        ids = self.tokenizer.encode(f"\n{text}")
        return tuple(ids[len(self._break) :]) if ids[: len(self._break)] == self._break else ()


def _edges(tokenizer: Tokenizer) -> Edges:
    if tokenizer.kind == "word":
        return Edges()
    continues, unfinished = set(), set()
    for token, piece in enumerate(tokenizer.vocabulary):
        if token <= BOS or not piece:
            continue
        if piece in _BYTE_VALUES:
            value = _BYTE_VALUES[piece]
            wordlike = value >= 0x80 or chr(value).isalnum()  # most likely part of a letter
            first = last = wordlike
        else:
            first, last = _wordlike(piece[0]), _wordlike(piece[-1])
        if first:
            continues.add(token)
        if last:
            unfinished.add(token)
    return Edges(frozenset(continues), frozenset(unfinished))


_BYTE_VALUES = {piece: value for value, piece in enumerate(BYTES)}
