"""Finds fonts that can draw a text. A PNG needs them here; in an SVG or a page the viewer chooses the fonts."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from headwise.errors import WorkFailed
from headwise.text.scripts import SCRIPTS

BASE = "DejaVu Sans"  # comes with matplotlib
# Tried first, in this order: sans-serif faces with wide coverage; then whatever else is installed.
PREFERRED = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN",
    "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei", "PingFang SC", "Hiragino Sans GB",
    "Heiti SC", "Arial Unicode MS", "Noto Sans", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Sans Arabic",
)  # fmt: skip
_EAST_ASIAN = re.compile(f"[{SCRIPTS['Hani']}{SCRIPTS['Kana']}{SCRIPTS['Hang']}\u3000-\u303f\uff00-\uffef]")


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps matplotlib from reporting fonts and glyphs that it lacks: fonts are chosen here, by what they can draw."""
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*[Gg]lyph .* missing")
            yield
    finally:
        logger.setLevel(level)


def families_for(texts: Iterable[str]) -> list[str]:
    """Returns font families that together have every character, for `font.family`; raises WorkFailed otherwise."""
    families, missing = _search(texts)
    if missing:
        shown = " ".join(sorted(missing)[:8])
        package = "fonts-noto-cjk" if _EAST_ASIAN.search(shown) else "fonts-noto-core"
        raise WorkFailed(
            f"no installed font can draw {shown} in a PNG; install one (Debian and Ubuntu: apt install {package}), "
            "or write .svg or .html, which use the fonts of the viewer"
        )
    return families


def available_families(texts: Iterable[str]) -> list[str]:
    """Returns the same without requiring every character: for files whose text is drawn by the viewer."""
    return _search(texts)[0]


def file_for(text: str) -> str:
    """Returns the file of one font that has every character of a text; raises WorkFailed if none has."""
    from matplotlib import font_manager

    wanted = {ord(character) for character in text if not character.isspace()}
    for family in (BASE, *PREFERRED, *_others()):
        if wanted <= _characters(family):
            return str(font_manager.findfont(font_manager.FontProperties(family=family), fallback_to_default=False))
    families_for([text])
    raise WorkFailed(f"no single font can draw '{text}' in a PNG; write .html, which uses the fonts of the viewer")


@quiet()
def _search(texts: Iterable[str]) -> tuple[list[str], set[str]]:
    missing = {character for text in texts for character in text if not character.isspace()}
    families: list[str] = []
    for family in (BASE, *PREFERRED, *_others()):
        if not missing:
            break
        covered = {character for character in missing if ord(character) in _characters(family)}
        if covered or family == BASE:
            families.append(family)
            missing -= covered
    return families, missing


@cache
def _others() -> tuple[str, ...]:
    from matplotlib import font_manager

    # Excludes fonts like "Last Resort", which have a placeholder box for every character.
    names = {entry.name for entry in font_manager.fontManager.ttflist if "last" not in entry.name.lower()}
    return tuple(sorted(names - {BASE, *PREFERRED}, key=lambda name: ("Sans" not in name, name)))


@cache
def _characters(family: str) -> frozenset[int]:
    """Returns the code points of a family's regular face; none if it is not installed or not scalable."""
    from matplotlib import font_manager

    try:
        path = font_manager.findfont(font_manager.FontProperties(family=family), fallback_to_default=False)
        return frozenset(font_manager.get_font(path).get_charmap())
    except (ValueError, RuntimeError, OSError):
        return frozenset()
