"""Finds held-out lines that also occur in the training text, where a score would mean nothing."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

SOURCE_ONLY, NORMALISED, EXACT = 1, 2, 3
# Shorter lines of a language model's text ('ROMEO:', headings) recur naturally and are not compared.
MIN_CHARACTERS = 40


def normalised(text: str) -> str:
    """Removes differences of case, spacing and compatibility forms."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


@dataclass(slots=True)
class HeldOut:
    """Compares training text with one held-out set. Keeps only hashes: about 200 MB for a million lines."""

    name: str
    lines: int = 0
    _by_source: dict[int, list[int]] = field(default_factory=dict)  # hash of the normalised source → lines
    _targets: list[tuple[int, int]] = field(default_factory=list)  # by line: hash of normalised target, of exact pair
    _places: dict[int, tuple[int, str, int]] = field(default_factory=dict)  # by line: closeness, file, line
    _compared: int = 0

    def add(self, source: str, target: str | None) -> None:
        """Adds the next held-out line; `target` is None for a language model."""
        line = self.lines
        self.lines += 1
        self._targets.append((0, 0))
        if not source.strip() or (target is None and len(source) < MIN_CHARACTERS):
            return
        self._compared += 1
        self._targets[line] = (hash(normalised(target or "")), hash((source, target)))
        self._by_source.setdefault(hash(normalised(source)), []).append(line)

    def match(self, key: int, source: str, target: str | None, file: str, number: int) -> None:
        """Compares a line of the training text; `key` is the hash of its normalised source."""
        for line in self._by_source.get(key, ()):
            wanted, exact = self._targets[line]
            if hash((source, target)) == exact:
                closeness = EXACT
            else:
                closeness = NORMALISED if target is None or hash(normalised(target)) == wanted else SOURCE_ONLY
            if closeness > self._places.get(line, (0, "", 0))[0]:
                self._places[line] = (closeness, file, number)

    @property
    def compared(self) -> int:
        """The number of held-out lines that are neither empty nor too short to compare."""
        return self._compared

    def count(self, closeness: int) -> int:
        """Counts the held-out lines whose closest match is of this kind."""
        return sum(place[0] == closeness for place in self._places.values())

    def places(self, least: int, most: int) -> list[tuple[int, str, int]]:
        """Lists up to `most` matches at least this close: (held-out line from 1, training file, training line)."""
        found = [
            (line + 1, file, number) for line, (closeness, file, number) in self._places.items() if closeness >= least
        ]
        return sorted(found)[:most]
