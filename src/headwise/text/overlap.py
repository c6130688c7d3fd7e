"""Held-out lines that stand in the training text: a score on them says nothing."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

SOURCE_ONLY, NORMALISED, EXACT = 1, 2, 3
# Short lines of a language model's text ('ROMEO:', headings) recur by nature.
LEAST_CHARACTERS = 40


def normalised(text: str) -> str:
    """The text without differences of case, spacing and compatibility forms."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


@dataclass(slots=True)
class HeldOut:
    """One held-out set. Only hashes are kept, so a set of a million lines takes some 200 MB."""

    name: str
    lines: int = 0
    _by_source: dict[int, list[int]] = field(default_factory=dict)  # hash of the normalised source → lines
    _targets: list[tuple[int, int]] = field(default_factory=list)  # by line: hash of normalised target, of exact pair
    _places: dict[int, tuple[int, str, int]] = field(default_factory=dict)  # by line: how it was met, file, line
    _compared: int = 0

    def add(self, source: str, target: str | None) -> None:
        """Remember the next line; `target` is None for a language model."""
        line = self.lines
        self.lines += 1
        self._targets.append((0, 0))
        if not source.strip() or (target is None and len(source) < LEAST_CHARACTERS):
            return
        self._compared += 1
        self._targets[line] = (hash(normalised(target or "")), hash((source, target)))
        self._by_source.setdefault(hash(normalised(source)), []).append(line)

    def meet(self, key: int, source: str, target: str | None, file: str, number: int) -> None:
        """See a line of the training text, whose normalised source has the hash `key`."""
        for line in self._by_source.get(key, ()):
            wanted, exact = self._targets[line]
            if hash((source, target)) == exact:
                how = EXACT
            else:
                how = NORMALISED if target is None or hash(normalised(target)) == wanted else SOURCE_ONLY
            if how > self._places.get(line, (0, "", 0))[0]:
                self._places[line] = (how, file, number)

    @property
    def compared(self) -> int:
        return self._compared

    def count(self, how: int) -> int:
        return sum(place[0] == how for place in self._places.values())

    def places(self, how: int, most: int) -> list[tuple[int, str, int]]:
        """Up to `most` of (held-out line from 1, training file, training line) that were met so, or more closely."""
        met = [(line + 1, file, number) for line, (closeness, file, number) in self._places.items() if closeness >= how]
        return sorted(met)[:most]
