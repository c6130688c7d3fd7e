"""Which lines of a corpus are held out for validation where the recipe names no validation text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

from headwise.text.overlap import MIN_CHARACTERS, normalised

Part = Literal["training", "validation"]
# Running text is held out in passages of so many lines: single lines would be torn out of their context.
PASSAGE = 20


def part_of_pairs(sources: Sequence[str], share: float) -> list[Part]:
    """The part of each pair, by a hash of its source: a sentence that occurs twice is on one side only."""
    return [_part(normalised(source), share) for source in sources]


def part_of_lines(first: int, count: int, share: float) -> list[Part]:
    """The part of lines first … first + count - 1 of a running text: passages at equal distances."""
    every = max(1, round(1 / share)) if share else 0  # one passage in so many, the first among them
    held_out = [bool(every) and number // PASSAGE % every == 0 for number in range(first, first + count)]
    return ["validation" if held else "training" for held in held_out]


def long_hashes(texts: Sequence[str]) -> list[int | None]:
    """Of each line of a running text its hash; None for a short one, which recurs naturally."""
    return [text_hash(text) if len(text) >= MIN_CHARACTERS else None for text in texts]


def stratified(texts: Sequence[str], labels: Sequence[str], share: float) -> frozenset[int]:
    """Hashes of the texts to hold out: of each label the share of its distinct texts with the smallest hashes.

    A label with two texts or more has one on each side at least. A text that occurs twice is on one side only.
    """
    of_label: dict[str, set[int]] = {}
    for text, label in zip(texts, labels, strict=True):
        of_label.setdefault(label, set()).add(text_hash(text))
    held_out: set[int] = set()
    for hashes in of_label.values():
        count = min(max(round(share * len(hashes)), 1), len(hashes) - 1) if share else 0
        held_out.update(sorted(hashes)[:count])
    return frozenset(held_out)


def text_hash(text: str) -> int:
    """A hash of the text apart from case, spaces and compatibility forms: 64 bits, the same everywhere."""
    return _hash(normalised(text))


def _part(text: str, share: float) -> Part:
    return "validation" if _hash(text) < share * 2**64 else "training"


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
