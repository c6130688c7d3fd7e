"""Splits text into sentences and joins them again, by rules for English, German, French, Chinese and Japanese.

A sentence ends
- at a line break;
- after 。！？ and the like, which end sentences in scripts without spaces, together with closing quotes and brackets;
- after . ! ? … and their closing quotes, if white space follows and then something other than a lower-case letter. A
  full stop after an abbreviation, an initial or (in German) an ordinal number does not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headwise.text.languages import base_language, uses_spaces

_CLOSING = "\"'”’»›)\\]}」』）】》〉"
_OPENING = "\"'“‘„‚«‹(\\[{¿¡「『（【《〈–—\\-"
_END = re.compile(
    # Possessive, and only from the start of a run: otherwise a long run of stops or spaces takes quadratic time.
    rf"(?P<wide>[。！？｡．‼⁇⁈⁉]++[。！？…{_CLOSING}]*+)(?P<gap>\s*+)"
    rf"|(?<![.!?…])(?P<narrow>[.!?…]++(?:[\s\u00a0\u202f]*+[»›])?[{_CLOSING}“]*+)(?P<space>\s++)"
    r"|(?<!\s)(?P<line>[^\S\n]*+\n\s*+)"
)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_WORD_BEFORE = re.compile(r"[\w.\-’']*$")
_LONGEST_WORD = 40  # how many characters to search backwards for a word: longer than any abbreviation
_BEGINS = re.compile(rf"[{_OPENING}\s]*(\S)")

# Words whose full stop does not end a sentence, in lower case and without the full stop.
_ABBREVIATIONS = {
    "en": "mr mrs ms dr prof sr jr st mt gen col sgt capt lt rev hon vs etc e.g i.e cf al no vol fig eq sec ch pp ed "
    "eds inc ltd co corp dept est approx u.s u.k u.n a.m p.m jan feb mar apr jun jul aug sep sept oct nov dec",
    "de": "hr fr frl dr prof dipl ing z.b d.h u.a u.ä o.ä i.d.r bzw usw ca evtl ggf inkl exkl max min nr str tel vgl "
    "bspw sog gem lt abs art bd jh jhd mio mrd s.o s.u v.a z.t geb gest st tsd zzgl abb kap hrsg b h a d i u z o v",
    "fr": "m mm mme mmes mlle mlles dr pr me st ste etc p.ex p ex cf env éd fig chap vol av bd janv févr avr juil sept "
    "oct nov déc c.-à-d n.b s.a",
}
_KNOWN = {language: frozenset(words.split()) for language, words in _ABBREVIATIONS.items()}
_ANY_LANGUAGE = frozenset().union(*_KNOWN.values())
# Abbreviations that often end a sentence: for these, only what follows decides.
_LAST = "etc usw u.s u.k u.n a.m p.m inc ltd co corp jr sr max min"
_OFTEN_LAST = frozenset(_LAST.split())


class Sentence(NamedTuple):
    text: str
    after: str  # the white space between it and the next


def split_sentences(text: str, language: str | None = None) -> list[Sentence]:
    """Splits a text into sentences that concatenate to it. Leading white space is an empty sentence of its own."""
    found = []
    start = len(text) - len(text.lstrip())
    if start:
        found.append(Sentence("", text[:start]))
    for match in _END.finditer(text, start):
        stop = match.start() if match["line"] is not None else match.end("wide" if match["wide"] else "narrow")
        if "\n" not in match[0] and not _ends(text, match, language):
            continue
        if stop > start:
            found.append(Sentence(text[start:stop], text[stop : match.end()]))
            start = match.end()
    if start < len(text):
        rest = text[start:]
        kept = rest.rstrip()
        found.append(Sentence(kept, rest[len(kept) :]))
    return found


def join_sentences(texts: Sequence[str], originals: Sequence[Sentence], language: str | None = None) -> str:
    """Joins translations of `originals` with the spacing of the originals.

    A single space between sentences is added or removed by language: Chinese has none after a full stop, English does.
    """
    spaced = language is None or uses_spaces(language)
    parts = []
    for index, (text, original) in enumerate(zip(texts, originals, strict=True)):
        gap = original.after
        if gap in ("", " ") and index + 1 < len(originals):
            gap = (" " if language is not None else gap) if spaced else ""
        parts.append(text + gap)
    return "".join(parts)


def cut_to_fit(text: str, length: Callable[[str], int], longest: int) -> list[Sentence]:
    """Cuts a text into pieces of at most `longest`, at the white space nearest to the middle, or else in the middle."""
    if len(text) < 2 or length(text) <= longest:
        return [Sentence(text, "")]
    middle = len(text) // 2
    gaps = [match.span() for match in re.finditer(r"\s+", text) if match.start() > 0 and match.end() < len(text)]
    start, end = min(gaps, key=lambda gap: abs(gap[0] - middle), default=(middle, middle))
    left, right = cut_to_fit(text[:start], length, longest), cut_to_fit(text[end:], length, longest)
    return [*left[:-1], Sentence(left[-1].text, text[start:end]), *right]


def _ends(text: str, match: re.Match[str], language: str | None) -> bool:
    """Whether what looks like the end of a sentence is one."""
    if match["wide"] is not None:
        return not (match["wide"][-1] in "」』" and text.startswith("と", match.end()))  # 「…。」と言った: he said "…"
    follows = _BEGINS.match(text, match.end())
    if follows is None or follows[1].islower():
        return False
    if not match["narrow"].startswith(".") or match["narrow"].startswith(".."):
        return True
    before = _WORD_BEFORE.search(text, max(0, match.start() - _LONGEST_WORD), match.start())
    word = before[0].lower() if before is not None else ""
    base = base_language(language or "")
    if base == "de" and word.isdigit() and len(word) <= 2:
        return False  # "am 3. Mai"
    if before and before[0].isupper() and _INITIALS.fullmatch(before[0]) and word not in _OFTEN_LAST:
        return False  # "J. Smith", "J.P. Morgan"
    if word.endswith("str") and len(word) > 3:
        return False  # "Hauptstr. 5"
    known = _KNOWN.get(base, _ANY_LANGUAGE)
    return word not in known or word in _OFTEN_LAST
