"""Do test lines stand in the training data? A sketch of the training lines, small enough for the model's card.

A line is normalised (NFKC, case folded, runs of spaces as one) and hashed to 64 bits. The upper 32 are kept, sorted, of
every line whose lower bits are divisible by `every`, a power of two that starts at 1 and doubles whenever more than
LARGEST hashes are held. So a small corpus is known line by line; of a larger one every `every`-th distinct line is,
chosen by its own hash: a test line either can be looked up, or is not counted. A chance match has a probability of
LARGEST / 2^32, one line in 65,000.

The card holds, under data.fingerprints, a sketch for "source" (translation) or "text" (language models):

    {"hash": "blake2b-64", "lines": 29000, "every": 1, "hashes": "<base64 of little-endian 32-bit numbers>"}
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwise.errors import ModelError
from headwise.text.overlap import normalised

LARGEST = 65_536
HASH = "blake2b-64"


@dataclass(frozen=True)
class Overlap:
    """How many of the lines that could be looked up were seen in training, and the first of them (from 1)."""

    lines: int
    checked: int
    seen: int
    first: tuple[int, ...] = ()

    @property
    def estimate(self) -> int:
        """Test lines that occur in the training data, extrapolated where only a share could be looked up."""
        return round(self.seen * self.lines / self.checked) if self.checked else 0


def training_sketch(lines: Iterable[str]) -> dict[str, Any]:
    """What a card keeps of the training lines. One pass; memory bounded by LARGEST."""
    kept: set[int] = set()
    every, count = 1, 0
    for line in lines:
        count += 1
        value = line_hash(line)
        if value is None or value % every:
            continue
        kept.add(value)
        while len(kept) > LARGEST:
            every *= 2
            kept = {value for value in kept if value % every == 0}
    upper = np.array(sorted({value >> 32 for value in kept}), dtype="<u4")
    return {"hash": HASH, "lines": count, "every": every, "hashes": base64.b64encode(upper.tobytes()).decode("ascii")}


def overlap(lines: Iterable[str], sketch: dict[str, Any]) -> Overlap:
    """How many of `lines` are in the training data that the sketch was made of. Empty lines do not count."""
    every, known = _read(sketch)
    total = checked = 0
    found: list[int] = []
    for number, line in enumerate(lines, start=1):
        value = line_hash(line)
        if value is None:
            continue
        total += 1
        if value % every == 0:
            checked += 1
            if value >> 32 in known:
                found.append(number)
    return Overlap(total, checked, len(found), tuple(found[:10]))


def line_hash(line: str) -> int | None:
    """64 bits of the line as it is compared; None for a line without text."""
    text = normalised(line)
    if not text:
        return None
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _read(sketch: dict[str, Any]) -> tuple[int, frozenset[int]]:
    try:
        if sketch["hash"] != HASH:
            raise ModelError(f"the card has data fingerprints of an unknown kind, {sketch['hash']!r}; upgrade headwise")
        hashes = np.frombuffer(base64.b64decode(sketch["hashes"], validate=True), dtype="<u4")
        return max(1, int(sketch["every"])), frozenset(hashes.tolist())
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the card's data fingerprints are damaged ({error!r}); take another copy") from error
