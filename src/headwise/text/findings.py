"""The findings of a corpus check, as values to print, store or act on."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from headwise.text.filters import FilterCounts

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
MAX_EXAMPLES = 5
EXCERPT = 80
# Lower bounds of the histogram's bins, in words per line.
BINS = (0, 1, 6, 11, 21, 41, 81, 161, 321)


def counted(count: int, things: str, does: str = "", share: str = "") -> str:
    """3 rows (10%) have no text, but 1 row (10%) has no text; `things` and `does` are in the plural."""
    verb, *rest = does.split(" ")
    if count == 1:
        things, verb = things.removesuffix("s"), {"": "", "have": "has", "are": "is"}.get(verb, f"{verb}s")
    return " ".join(part for part in (f"{count:,} {things}", share and f"({share})", verb, *rest) if part)


@dataclass(frozen=True, slots=True)
class Example:
    file: str
    line: int | None
    text: str = ""

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(slots=True)
class Finding:
    """One kind of fault. An error means that the data cannot be trained on; a note needs no action."""

    name: str
    severity: Severity
    count: int
    message: str
    remedy: str
    examples: list[Example] = field(default_factory=list)

    def line(self) -> str:
        """Formats the finding as one line, with the first place where it occurs."""
        where = f" (first: {self.examples[0].place})" if self.examples else ""
        return f"{self.severity}: {self.message}{where}; {self.remedy}"


@dataclass(slots=True)
class Side:
    """Counts of one side of the corpus. Each Chinese or Japanese character counts as a word."""

    name: str
    files: tuple[str, ...]
    lines: int = 0
    characters: int = 0
    word_counts: Counter[int] = field(default_factory=Counter)  # words per line → number of lines

    @property
    def words(self) -> int:
        return sum(words * lines for words, lines in self.word_counts.items())

    @property
    def longest(self) -> int:
        return max(self.word_counts, default=0)

    def quantile(self, share: float) -> int:
        """Returns the number of words that `share` of the lines do not exceed."""
        left = share * self.lines
        for words in sorted(self.word_counts):
            left -= self.word_counts[words]
            if left <= 0:
                return words
        return self.longest

    def histogram(self) -> list[tuple[str, int]]:
        """Counts lines by their number of words, as (label, lines)."""
        bins = []
        for low, high in zip(BINS, (*BINS[1:], sys.maxsize), strict=True):
            label = f"{low}+" if low == BINS[-1] else str(low) if high == low + 1 else f"{low}-{high - 1}"
            bins.append((label, sum(lines for words, lines in self.word_counts.items() if low <= words < high)))
        while len(bins) > 1 and not bins[-1][1]:
            bins.pop()
        return bins

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "files": list(self.files),
            "lines": self.lines,
            "words": self.words,
            "characters": self.characters,
            "median": self.quantile(0.5),
            "longest": self.longest,
            "histogram": [{"words": label, "lines": lines} for label, lines in self.histogram()],
        }


@dataclass(slots=True)
class Report:
    """The result of a corpus check."""

    sides: list[Side]
    counts: FilterCounts  # of pairs, or of lines for a language model
    findings: list[Finding]
    correlation: float | None = None  # of both sides' lengths
    held_out: dict[str, int] = field(default_factory=dict)  # lines of validation and test
    unit: str = "lines"  # what is counted: pairs, lines, rows, pictures, recordings
    labels: dict[str, int] = field(default_factory=dict)  # rows of each label, most frequent first

    @property
    def unusable(self) -> bool:
        """Whether the data cannot be trained on."""
        return any(finding.severity == "error" for finding in self.findings)

    def finding(self, name: str) -> Finding | None:
        return next((finding for finding in self.findings if finding.name == name), None)

    def summary_lines(self) -> list[str]:
        """Formats the short form: the totals, then one line per error or warning."""
        words = " + ".join(f"{side.words:,}" for side in self.sides)
        dropped = ", ".join(f"{name} {count:,}" for name, count in self.counts.dropped.items())
        lines = [
            f"{counted(self.counts.lines, self.unit)}{words and f', {words} words'}; {self.counts.kept:,} kept"
            + (dropped and f", dropped: {dropped}")
        ]
        return lines + [finding.line() for finding in self.findings if finding.severity != "note"]

    def as_dict(self) -> dict[str, Any]:
        """Converts the report to JSON types, for programs; the names are stable."""
        return {
            "unusable": self.unusable,
            "sides": [side.as_dict() for side in self.sides],
            "lines": {"in": self.counts.lines, "kept": self.counts.kept, "dropped": dict(self.counts.dropped)},
            "length_correlation": self.correlation,
            "held_out": dict(self.held_out),
            "labels": dict(self.labels),
            "findings": [asdict(finding) for finding in self.findings],
        }
