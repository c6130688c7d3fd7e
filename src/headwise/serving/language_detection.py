"""Detects which of a server's languages a text is in, with the n-gram model that py3langid brings along.

The model knows 139 languages. Only those that have a name in text/languages.py compete with the server's own: rarer
ones would win too many texts of one or two words. docs/log/serving.md has the figures for the choice and the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from headwise.text.languages import NAMES, base_language

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# In percent. Above it, all of 1,200 captions and of 1,200 texts of three words were detected correctly.
LEAST_CONFIDENCE = 50.0
READ_CHARACTERS = 2_000  # of a text: more of it hardly changes the result
SAME = {"nb": "no"}  # codes that the model has another name for
_loading = Lock()
RIVALS = NAMES.keys() - {"eo", "la", "yue"}  # not those that are written rarely, or as another is


class Detection(NamedTuple):
    """The confidence, 0 to 100, that a text is in a language."""

    language: str
    confidence: float


def detect_language(text: str, languages: Sequence[str]) -> list[Detection]:
    """Ranks `languages` for a text, likeliest first; languages that the model does not know are left out.

    A language's confidence is its probability, divided by that of all `languages` and of the likeliest other one. So a
    text in a language that is not in the list gives low confidences to all that are.
    """
    with _loading:  # once, however many requests come before it is there
        identifier = _identifier()
    probabilities = dict(identifier.rank(text[:READ_CHARACTERS]))
    own = {code: probabilities[label] for code in languages if (label := _label(code)) in probabilities}
    labels = {_label(code) for code in own}
    others = [probabilities[name] for name in RIVALS if name in probabilities and name not in labels]
    total = sum(probabilities[label] for label in labels) + max(others)
    found = [Detection(code, round(100.0 * share / total, 1)) for code, share in own.items()]
    return sorted(found, key=lambda detection: -detection.confidence)


def _label(code: str) -> str:
    base = base_language(code)
    return SAME.get(base, base)


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # loads a second's worth of data: only where needed

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
