"""Which lines of a corpus are held out for validation where the recipe names no validation text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

from headwise.text.overlap import normalised

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


def _part(text: str, share: float) -> Part:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return "validation" if int.from_bytes(digest, "little") < share * 2**64 else "training"
