"""Generates the English-Chinese corpus of the demo: sentence pairs from a small grammar, with nothing to download.

An English sentence always has the same Chinese side. Every held-out pair contains a combination of words (a verb and
its object, a verb and a place, a landmark and a thing) that no training pair contains, although each word by itself
occurs in training. So a model that translates them has learned the words and the grammar, not the sentences.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from headwise.errors import UsageError, WorkFailed
from headwise.text.phrasebook_patterns import PATTERNS, Frame, frames
from headwise.text.phrasebook_phrases import Split

Item = TypeVar("Item")


class PhrasePair(NamedTuple):
    english: str
    chinese: str


class Phrasebook:
    """All sentence pairs of the grammar, in an order that depends on the seed."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self._patterns = {
            held_out: [frames(pattern, Split(held_out)) for pattern in PATTERNS] for held_out in (False, True)
        }

    def size(self, *, held_out: bool = False) -> int:
        """Counts the distinct pairs exactly."""
        return sum(_size(frame) for pattern in self._patterns[held_out] for frame in pattern)

    def pairs(self, count: int, *, held_out: bool = False) -> Iterator[PhrasePair]:
        """Yields the first `count` pairs in the seed's order, all distinct; patterns, verbs and tenses take turns."""
        available = self.size(held_out=held_out)
        if not 0 <= count <= available:
            raise UsageError(
                f"{count:,} pairs cannot be taken: the phrasebook has {available:,} of this kind; ask for fewer"
            )
        return islice(self._stream(held_out), count)

    def _stream(self, held_out: bool) -> Iterator[PhrasePair]:
        generator = random.Random(f"{self.seed} {held_out}")
        streams = []
        for pattern in self._patterns[held_out]:
            shuffled = generator.sample(pattern, len(pattern))
            streams.append(_take_turns([_sentences(frame, generator.getrandbits(64)) for frame in shuffled]))
        return _take_turns(streams)


def demo_sentences(count: int, *, seed: int = 1, longest: int = 13) -> list[str]:
    """Lists held-out English sentences for display: the patterns in turn, at most `longest` words each."""
    book = Phrasebook(seed)
    candidates = book.pairs(book.size(held_out=True), held_out=True)
    return list(islice((pair.english for pair in candidates if len(pair.english.split()) <= longest), count))


def write_corpus(directory: str | Path, *, train: int, held_out: int, seed: int = 1) -> dict[str, Path]:
    """Writes train, val and test as plain text, one sentence per line; returns the path of each ("train.en", ...).

    val and test have `held_out` pairs each; no pair occurs in two of the three.
    """
    directory, book = Path(directory), Phrasebook(seed)
    unseen = book.pairs(2 * held_out, held_out=True)
    parts = {"train": book.pairs(train), "val": islice(unseen, held_out), "test": unseen}
    paths: dict[str, Path] = {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, pairs in parts.items():
            paths |= _write_part(directory / name, pairs)
    except OSError as problem:
        raise WorkFailed(
            f"{directory}: cannot write the corpus ({problem.strerror}); choose another folder"
        ) from problem
    return paths


def _write_part(stem: Path, pairs: Iterable[PhrasePair]) -> dict[str, Path]:
    """Writes both sides under temporary names first: a file with its final name is always complete."""
    finals = [stem.with_name(f"{stem.name}.{language}") for language in ("en", "zh")]
    drafts = [path.with_name(f"{path.name}.part") for path in finals]
    try:
        with (
            drafts[0].open("w", encoding="utf-8", newline="\n") as english,
            drafts[1].open("w", encoding="utf-8", newline="\n") as chinese,
        ):
            for pair in pairs:
                english.write(pair.english + "\n")
                chinese.write(pair.chinese + "\n")
        for draft, final in zip(drafts, finals, strict=True):
            draft.replace(final)
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)
    return {path.name: path for path in finals}


def _size(frame: Frame) -> int:
    return math.prod(len(slot) for slot in frame.slots)


def _sentences(frame: Frame, key: int) -> Iterator[PhrasePair]:
    """Yields every sentence of a frame once, in an order that depends on `key`."""
    slots, render = [(slot, len(slot)) for slot in frame.slots], frame.render
    for number in _permutation(_size(frame), key):
        fillings = []
        for slot, length in slots:
            number, digit = divmod(number, length)
            fillings.append(slot[digit])
        english, chinese = render(*fillings)
        yield PhrasePair(english[0].upper() + english[1:], chinese)


def _permutation(size: int, key: int) -> Iterator[int]:
    """Yields the numbers below `size` in a scattered order, without remembering those already yielded.

    Each mixing step is invertible (an odd factor modulo a power of two; a shift onto lower bits), so different numbers
    stay different. Results not below `size` are mixed again until they are.
    """
    bits = max(2, (size - 1).bit_length())
    mask, shift = (1 << bits) - 1, (bits + 1) // 2
    generator = random.Random(key)
    first, second, third = (generator.getrandbits(bits) | 1 for _ in range(3))
    offset = generator.getrandbits(bits)
    for number in range(size):
        while True:
            number = ((number + offset) * first) & mask
            number = ((number ^ (number >> shift)) * second) & mask
            number = ((number ^ (number >> shift)) * third) & mask
            number ^= number >> shift
            if number < size:
                break
        yield number


def _take_turns(streams: list[Iterator[Item]]) -> Iterator[Item]:
    """Yields one item of each stream in turn, and skips streams that have ended."""
    while streams:
        going = []
        for stream in streams:
            for item in stream:
                going.append(stream)
                yield item
                break
        streams = going
