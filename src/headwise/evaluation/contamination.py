"""Finds test lines that occur in the training data, with a sketch of the training lines that fits the model's card.

A line is normalised (NFKC, case folded, runs of spaces as one) and hashed to 64 bits. Lines whose hash is divisible by
`every` are kept: the upper 32 bits, sorted. `every` is a power of two that starts at 1 and doubles whenever there are
more than MAX_HASHES hashes. So of a small corpus every line is known; of a larger one about one distinct line in
`every`, chosen by its own hash, so that a test line either can be looked up or is not counted. A chance match has a
probability of MAX_HASHES / 2^32, one line in 65,000.

The card holds, under data.fingerprints, a sketch for "source" (translation) or "text" (language models):

    {"hash": "blake2b-64", "lines": 29000, "every": 1, "hashes": "<base64 of little-endian 32-bit numbers>"}
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headwise.errors import ModelError
from headwise.text.overlap import normalised

MAX_HASHES = 65_536
HASH = "blake2b-64"


@dataclass(frozen=True)
class Overlap:
    """Counts test lines, those that could be looked up, and those seen in training; `first` are line numbers from 1."""

    lines: int
    checked: int
    seen: int
    first: tuple[int, ...] = ()

    @property
    def estimate(self) -> int:
        """The number of test lines in the training data, extrapolated if only a share could be looked up."""
        return round(self.seen * self.lines / self.checked) if self.checked else 0

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "estimate": self.estimate}


def training_sketch(lines: Iterable[str]) -> dict[str, Any]:
    """Computes the sketch that a card keeps of the training lines, in one pass and bounded memory."""
    kept: set[int] = set()
    every, count = 1, 0
    for line in lines:
        count += 1
        value = line_hash(line)
        if value is None or value % every:
            continue
        kept.add(value)
        while len(kept) > MAX_HASHES:
            every *= 2
            kept = {value for value in kept if value % every == 0}
    upper = np.array(sorted({value >> 32 for value in kept}), dtype="<u4")
    return {"hash": HASH, "lines": count, "every": every, "hashes": base64.b64encode(upper.tobytes()).decode("ascii")}


def overlap(lines: Iterable[str], sketch: dict[str, Any]) -> Overlap:
    """Counts how many of `lines` occur in the training data behind the sketch. Empty lines do not count."""
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


def seen_in_training(card: Mapping[str, Any], side: str, lines: Sequence[str]) -> Overlap | None:
    """Test lines that the fingerprints of a model's card know; None where the card has none."""
    data = card.get("data")
    fingerprints = data.get("fingerprints") if isinstance(data, dict) else None
    sketch = fingerprints.get(side) if isinstance(fingerprints, dict) else None
    return overlap(lines, sketch) if isinstance(sketch, dict) else None


def line_hash(line: str) -> int | None:
    """Hashes the normalised line to 64 bits; None for a line without text."""
    text = normalised(line)
    if not text:
        return None
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _read(sketch: dict[str, Any]) -> tuple[int, frozenset[int]]:
    try:
        if sketch["hash"] != HASH:
            raise ModelError(f"the card's data fingerprints use an unknown hash, {sketch['hash']!r}; upgrade headwise")
        hashes = np.frombuffer(base64.b64decode(sketch["hashes"], validate=True), dtype="<u4")
        return max(1, int(sketch["every"])), frozenset(hashes.tolist())
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the card's data fingerprints are damaged ({error!r}); get a fresh copy") from error
