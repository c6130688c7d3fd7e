"""Filters that drop lines before training; each reason is a setting of `data.filters` in the recipe.

A pair is dropped for the first reason that applies, in the order of REASONS, so that

    lines read = lines kept + lines dropped, summed over the reasons

holds exactly (`FilterCounts`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headwise.config.schema import Filters
from headwise.text.hash_set import HashSet
from headwise.text.scripts import in_wrong_script, length, scripts_of

REASONS = ("empty", "max_characters", "control", "max_ratio", "copies", "script", "duplicates")

# Control characters other than tab and line feed (a JSONL text may have line feeds), and the C1 block.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

Fault = Callable[[str, str], bool]
PairFilter = Callable[[str, str], str | None]
LineFilter = Callable[[str], str | None]


@dataclass
class FilterCounts:
    """Counts lines (or pairs) kept, and dropped by reason."""

    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def lines(self) -> int:
        return self.kept + sum(self.dropped.values())

    def add(self, reason: str | None) -> None:
        if reason is None:
            self.kept += 1
        else:
            self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def __str__(self) -> str:
        reasons = ", ".join(f"{name} {count:,}" for name, count in self.dropped.items())
        return (
            f"{self.lines:,} lines: {self.kept:,} kept, {self.lines - self.kept:,} dropped{reasons and f' ({reasons})'}"
        )


def pair_filter(filters: Filters, languages: Sequence[str] = ()) -> PairFilter:
    """Builds a function of (source, target) that returns the reason to drop the pair, or None.

    The function remembers the pairs it has seen, for `duplicates`.
    """
    faults = [(name, fault) for name, fault in pair_faults(filters, languages).items() if is_on(filters, name)]

    def reason(source: str, target: str) -> str | None:
        for name, fault in faults:
            if fault(source, target):
                return name
        return None

    return reason


def line_filter(filters: Filters, languages: Sequence[str] = ()) -> LineFilter:
    """Builds a function of one line of a language model's text that returns the reason to drop it, or None.

    Empty lines (they separate paragraphs) and long ones (training cuts text into blocks anyway) are kept: `empty` and
    `max_characters` do not apply.
    """
    faults = [(name, fault) for name, fault in line_faults(languages).items() if is_on(filters, name)]

    def reason(text: str) -> str | None:
        for name, fault in faults:
            if fault(text):
                return name
        return None

    return reason


def row_filter(filters: Filters) -> Callable[[tuple[str, ...]], str | None]:
    """Builds a function of the cells of a table's row that returns the reason to drop it, or None.

    Long texts are kept: a model reads as much of them as it can.
    """
    faults = [(name, fault) for name, fault in row_faults().items() if is_on(filters, name)]

    def reason(row: tuple[str, ...]) -> str | None:
        for name, fault in faults:
            if fault(row):
                return name
        return None

    return reason


def is_on(filters: Filters, name: str) -> bool:
    return getattr(filters, name) is not False


def has_control(text: str) -> bool:
    # isprintable is several times faster than the search, and true for nearly all lines.
    return not text.isprintable() and CONTROL.search(text) is not None


def exceeds_ratio(source: str, target: str, max_ratio: float) -> bool:
    """Tells whether one side has at least `max_ratio` times the tokens of the other, as `scripts.length` estimates.

    Tokens are estimated because filters run before a tokenizer exists. Fewer than two tokens count as two: 'No.' may
    well be a whole sentence in another language.
    """
    # A character weighs 2 or 5, so for nearly all pairs the plain lengths already rule out such a ratio.
    shorter, longer = sorted((len(source), len(target)))
    if 5 * longer < max_ratio * max(20, 2 * shorter):
        return False
    left, right = max(20, length(source)), max(20, length(target))
    return left >= max_ratio * right or right >= max_ratio * left


def pair_faults(filters: Filters, languages: Sequence[str] = ()) -> dict[str, Fault]:
    """Returns the check behind each reason, in the order of REASONS, whether its filter is on or not."""
    most, ratio = filters.max_characters, filters.max_ratio
    source_scripts, target_scripts = (scripts_of(code) for code in (*languages, "", "")[:2])
    seen = HashSet()
    return {
        "empty": lambda source, target: not source or not target or source.isspace() or target.isspace(),
        "max_characters": lambda source, target: len(source) > most or len(target) > most,
        "control": lambda source, target: has_control(source) or has_control(target),
        "max_ratio": lambda source, target: exceeds_ratio(source, target, ratio),
        "copies": lambda source, target: source.strip() == target.strip(),
        "script": lambda source, target: (
            in_wrong_script(source, source_scripts) or in_wrong_script(target, target_scripts)
        ),
        "duplicates": lambda source, target: not seen.add((source, target)),
    }


def line_faults(languages: Sequence[str] = ()) -> dict[str, Callable[[str], bool]]:
    """Returns the checks for a line of a language model's text."""
    scripts = scripts_of(languages[0]) if languages else ()
    seen = HashSet()
    return {
        "control": has_control,
        "script": lambda text: in_wrong_script(text, scripts),
        "duplicates": lambda text: bool(text) and not text.isspace() and not seen.add(text),
    }


def row_faults() -> dict[str, Callable[[tuple[str, ...]], bool]]:
    """Returns the checks for a row of a table."""
    seen = HashSet()
    return {
        "empty": lambda row: any(not cell or cell.isspace() for cell in row),
        "control": lambda row: any(map(has_control, row)),
        "duplicates": lambda row: not seen.add(row),
    }
