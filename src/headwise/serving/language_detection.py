"""Detects which of a few languages a text is in, as far as its script tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from headwise.text.scripts import SCRIPTS, scripts_of


def detect_by_script(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """Returns the languages with the share of the text's letters in their script, 0 to 100, largest first.

    Languages that share a script cannot be told apart: then the list is empty.
    """
    scripts = {language: scripts_of(language) for language in languages}
    used = [script for own in scripts.values() for script in own]
    if len(scripts) > 1 and (not all(scripts.values()) or len(used) != len(set(used))):
        return []
    counts = _letters(text)
    letters = sum(counts.values())
    shares = {
        language: 100.0 * sum(counts.get(script, 0) for script in own) / letters if letters else 0.0
        for language, own in scripts.items()
    }
    return sorted(shares.items(), key=lambda pair: -pair[1])


def _letters(text: str) -> dict[str, int]:
    return {name: sum(map(len, re.findall(_pattern(name), text))) for name in SCRIPTS}


@cache
def _pattern(script: str) -> str:
    return f"[{SCRIPTS[script]}]+"
