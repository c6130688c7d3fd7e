"""HTML as alternating markup and text, so that the text can be translated and the markup stays as it is."""

from __future__ import annotations

import html
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import groupby, pairwise
from typing import NamedTuple

# Elements whose content is not prose. HTML's own attribute translate="no" marks further ones.
KEPT = frozenset({"script", "style", "code", "pre", "textarea"})
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})


class Part(NamedTuple):
    """A stretch of a document: as it is written there, and the text that it stands for ('' for markup)."""

    raw: str
    text: str


def split_html(document: str) -> list[Part]:
    """Splits a document into parts whose `raw` concatenate to it. Text without a letter or digit counts as markup."""
    parser = _Places(document)
    parser.feed(document)
    # A tag that is never closed is kept as it is. To let the parser find text in it would take quadratic time.
    unfinished = len(document) - len(parser.rawdata)
    marks = [*parser.marks, (unfinished, False), (len(document), False)]
    pieces = [(document[start:end], is_text) for (start, is_text), (end, _) in pairwise(marks)]
    parts = []
    for is_text, group in groupby(pieces, key=lambda piece: piece[1]):
        raw = "".join(piece for piece, _ in group)
        text = html.unescape(raw) if is_text else ""
        parts.append(Part(raw, text if any(map(str.isalnum, text)) else ""))
    return [part for part in parts if part.raw]


def join_html(parts: Sequence[Part], translations: Sequence[str]) -> str:
    """Puts one translation in the place of each part with text, with the white space that was around the original."""
    remaining = iter(translations)
    return "".join(_in_place(part.raw, next(remaining)) if part.text else part.raw for part in parts)


def _in_place(raw: str, translation: str) -> str:
    start = raw[: len(raw) - len(raw.lstrip())]
    return start + html.escape(translation.strip(), quote=False) + raw[len(raw.rstrip()) :]


class _Places(HTMLParser):
    """Notes where each tag, comment, reference and text begins, and whether it is text to translate."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=False)
        self.marks: list[tuple[int, bool]] = []
        self._kept: list[str] = []  # the open elements inside of an element that is not translated, with that one
        self._lines = [0]
        for line in document.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)

    def _mark(self, is_text: bool) -> None:
        line, column = self.getpos()
        self.marks.append((self._lines[line - 1] + column, is_text and not self._kept))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._mark(False)
        if tag not in VOID and (self._kept or tag in KEPT or dict(attrs).get("translate") == "no"):
            self._kept.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._mark(False)

    def handle_endtag(self, tag: str) -> None:
        self._mark(False)
        if tag in self._kept:
            while self._kept.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self._mark(True)

    def handle_entityref(self, name: str) -> None:
        self._mark(True)

    def handle_charref(self, name: str) -> None:
        self._mark(True)

    def handle_comment(self, data: str) -> None:
        self._mark(False)

    def handle_decl(self, decl: str) -> None:
        self._mark(False)

    def handle_pi(self, data: str) -> None:
        self._mark(False)

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Reads <![…] as browsers do, as a comment; Python's own way fails for some."""
        return self.parse_bogus_comment(i, bool(report))
