"""Recognises the script of a text, and measures its length in a way that is fair to every script.

Scripts have their ISO 15924 names. The ranges hold the letters of present-day texts, not all letters of Unicode.
"""

from __future__ import annotations

import re
from functools import cache

from headwise.text.languages import base_language, subtags

# Bodies of regular-expression classes.
SCRIPTS = {
    "Latn": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a",
    "Grek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrl": "\u0400-\u052f\u1c80-\u1c8f\ua640-\ua69f",
    "Armn": "\u0531-\u058f",
    "Hebr": "\u0590-\u05ff\ufb1d-\ufb4f",
    "Arab": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Deva": "\u0900-\u0963\u0966-\u097f\ua8e0-\ua8ff",
    "Beng": "\u0980-\u09ff",
    "Guru": "\u0a00-\u0a7f",
    "Gujr": "\u0a80-\u0aff",
    "Taml": "\u0b80-\u0bff",
    "Telu": "\u0c00-\u0c7f",
    "Knda": "\u0c80-\u0cff",
    "Mlym": "\u0d00-\u0d7f",
    "Sinh": "\u0d80-\u0dff",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e5b",
    "Laoo": "\u0e80-\u0eff",
    "Mymr": "\u1000-\u109f\uaa60-\uaa7f",
    "Geor": "\u10a0-\u10ff\u1c90-\u1cbf",
    "Ethi": "\u1200-\u139f",
    "Khmr": "\u1780-\u17ff",
    "Kana": "\u3041-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f",  # hiragana and katakana
    "Hang": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3",
    "Hani": "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",
}

# Scripts that put no spaces between words; text/languages.py lists the languages.
SCRIPTS_WITHOUT_SPACES = ("Hani", "Kana", "Thai", "Laoo", "Mymr", "Khmr")
LETTERS_WITHOUT_SPACES = "".join(SCRIPTS[name] for name in SCRIPTS_WITHOUT_SPACES)

_LANGUAGES = {
    (
        "Latn",
    ): "en de fr es it pt nl sv da no nb nn is fi et lv lt pl cs sk sl hr hu ro tr vi id ms tl sw eu ca gl ga cy mt "
    "sq af eo la az uz",
    ("Cyrl",): "ru uk be bg mk kk ky mn tg",
    ("Latn", "Cyrl"): "sr bs",
    ("Grek",): "el",
    ("Armn",): "hy",
    ("Hebr",): "he yi",
    ("Arab",): "ar fa ur ps ug",
    ("Deva",): "hi mr ne",
    ("Beng",): "bn",
    ("Guru",): "pa",
    ("Gujr",): "gu",
    ("Taml",): "ta",
    ("Telu",): "te",
    ("Knda",): "kn",
    ("Mlym",): "ml",
    ("Sinh",): "si",
    ("Thai",): "th",
    ("Laoo",): "lo",
    ("Mymr",): "my",
    ("Geor",): "ka",
    ("Ethi",): "am ti",
    ("Khmr",): "km",
    ("Kana", "Hani"): "ja",
    ("Hang", "Hani"): "ko",
    ("Hani",): "zh yue",
}
LANGUAGE_SCRIPTS = {code: scripts for scripts, codes in _LANGUAGES.items() for code in codes.split()}
# Azerbaijani and Uzbek are also written in Cyrillic.
LANGUAGE_SCRIPTS |= {"az": ("Latn", "Cyrl"), "uz": ("Latn", "Cyrl")}

_SPACELESS = re.compile(f"[{LETTERS_WITHOUT_SPACES}]")
# Of the scripts without spaces, those whose every character counts as a word.
_CHARACTER_WORDS = re.compile(f"[{SCRIPTS['Hani']}{SCRIPTS['Kana']}]+")
# First bytes, in UTF-8, of U+3000 to U+DFFF: Chinese, Japanese and Korean. Deleting bytes from a bytes object is many
# times faster than any search by character, and these functions see every line of a corpus.
_DENSE_BYTES = bytes(range(0xE3, 0xEE))
# Fewer foreign letters than this prove nothing: names, abbreviations, units.
MIN_LETTERS = 5


def scripts_of(language: str) -> tuple[str, ...]:
    """Returns the scripts of a language; () if they are unknown. A script in the code takes precedence: sr-Latn."""
    for part in subtags(language)[1:]:
        name = {"Hans": "Hani", "Hant": "Hani"}.get(part.title(), part.title())
        if name in SCRIPTS:
            return (name,)
    return LANGUAGE_SCRIPTS.get(base_language(language), ())


def is_spaceless(character: str) -> bool:
    """Tells whether a character is a letter of a script that puts no spaces between words."""
    return _SPACELESS.match(character) is not None


@cache
def _letters(scripts: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"[{''.join(SCRIPTS[name] for name in scripts)}]+")


@cache
def _others(scripts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in SCRIPTS if name not in scripts)


@cache
def _harmless_bytes(scripts: tuple[str, ...]) -> bytes:
    """Returns all bytes except those that begin a letter of another script in UTF-8."""
    suspicious: set[int] = set()
    for name in _others(scripts):
        for low, high, single in re.findall(r"(.)-(.)|(.)", SCRIPTS[name]):
            first, last = (low or single).encode()[0], (high or single).encode()[0]
            suspicious.update(range(first, last + 1))
    return bytes(byte for byte in range(256) if byte not in suspicious)


def in_wrong_script(text: str, scripts: tuple[str, ...]) -> bool:
    """Tells whether most letters of the text belong to scripts other than these; never for ()."""
    if not scripts or (text.isascii() and scripts[0] == "Latn"):
        return False
    if len(text.encode("utf-8", "surrogatepass").translate(None, _harmless_bytes(scripts))) < MIN_LETTERS:
        return False
    foreign = "".join(_letters(_others(scripts)).findall(text))
    own = "".join(_letters(scripts).findall(text))
    return len(foreign) >= MIN_LETTERS and length(foreign) > length(own)


def length(text: str) -> int:
    """Estimates the length in tenths of a token: 5 per Chinese, Japanese or Korean character, 2 per other character.

    With these weights a Chinese sentence and its English translation come out about equally long.
    """
    return 2 * len(text) if text.isascii() else 2 * len(text) + 3 * _count_dense(text)


def count_words(text: str) -> int:
    """Counts words between spaces; each Chinese or Japanese character counts as a word."""
    if text.isascii() or not _count_dense(text):
        return len(text.split())
    characters = sum(map(len, _CHARACTER_WORDS.findall(text)))
    return characters + len(_CHARACTER_WORDS.sub(" ", text).split())


def _count_dense(text: str) -> int:
    encoded = text.encode("utf-8", "surrogatepass")
    return len(encoded) - len(encoded.translate(None, _DENSE_BYTES))
