"""The token store: a corpus as ids in memory-mapped files, written once and reused as long as nothing changes.

    <cache>/<key>/                      key: a hash of the content, the tokenizers and the filters
        source.tokens  source.offsets   ids end to end; sentence i is offsets[i] to offsets[i + 1]
        target.tokens  target.offsets   (a language model has `text` instead of the two)
        lines                           the line number of each sentence, from 1 through all files of the corpus
        manifest.json                   sizes, hashes, filter counts; written last, so it marks the store as complete

Ids have no begin or end of sentence: batches add them. Mapped pages are released regularly while they are read, so the
memory in use does not grow with the corpus.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.data.cached import StoreDamagedError
from headwise.errors import DataError
from headwise.text.filters import FilterCounts
from headwise.text.ragged import Ragged, spans

FORMAT = 1
MANIFEST = "manifest.json"
# Reading a row may map 64 KB around its tokens and 64 KB around its offset (the kernel maps neighbouring pages too).
ROWS_BETWEEN_RELEASES = 400
SMALL = 64 * 2**20  # bytes; a smaller store may stay in memory
_BLOCK = 1_000_000
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Manifest:
    """Describes a store without reading it."""

    sides: dict[str, str]  # name of the side -> numpy type of its ids
    sentences: int
    tokens: dict[str, int]
    longest: dict[str, int]
    files: list[tuple[str, int]]  # each corpus file (source side) and the line of its last text
    dropped: dict[str, int]  # by reason
    sizes: dict[str, int]  # bytes of each file of the store
    hashes: dict[str, str]
    about: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def counts(self) -> FilterCounts:
        return FilterCounts(self.sentences, dict(self.dropped))

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(vars(self), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        try:
            values = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
            values["files"] = [(str(name), int(lines)) for name, lines in values["files"]]
            manifest = cls(**values)
            whole = all((directory / name).stat().st_size == size for name, size in manifest.sizes.items())
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreDamagedError(f"{directory}: {error}") from error
        if manifest.format != FORMAT or not whole:
            raise StoreDamagedError(f"{directory}: the format is unknown or a file is truncated")
        return manifest


class Store:
    """Reads a corpus as ids: rows of one side (`text`) or of two aligned ones (`source`, `target`)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.manifest = Manifest.read(directory)
        self.sides = tuple(self.manifest.sides)
        self._maps: list[mmap.mmap] = []
        self._tokens = {side: self._map(f"{side}.tokens", kind) for side, kind in self.manifest.sides.items()}
        self._offsets = {side: self._map(f"{side}.offsets", "int64") for side in self.sides}
        self._lines = self._map("lines", "int64")
        self._large = sum(self.manifest.sizes.values()) > SMALL
        self._rows_touched = 0

    def __len__(self) -> int:
        return self.manifest.sentences

    def rows(self, side: str, rows: NDArray[np.integer]) -> Ragged:
        """Returns the sentences of `rows`, in that order."""
        offsets = self._offsets[side]
        starts = offsets[rows]
        lengths = offsets[rows + 1] - starts
        tokens = self._tokens[side][spans(starts, lengths)]
        self._touch(len(rows))
        return Ragged(tokens, lengths)

    def parts(self, side: str, rows: NDArray[np.integer], starts: Ints, lengths: Ints) -> Ragged:
        """Returns of each of `rows` the tokens from `starts` on, `lengths` of them."""
        tokens = self._tokens[side][spans(self._offsets[side][rows] + starts, lengths)]
        self._touch(len(rows))
        return Ragged(tokens, lengths)

    def offsets(self, side: str, rows: NDArray[np.integer]) -> Ints:
        """Returns where each of `rows` begins in the whole side."""
        found: Ints = np.array(self._offsets[side][rows], dtype=np.int64)
        self._touch(len(rows))
        return found

    def slice(self, side: str, start: int, stop: int) -> NDArray[np.integer]:
        """Returns tokens `start` to `stop` of the whole side, across sentence boundaries."""
        tokens = np.array(self._tokens[side][start:stop])
        self._touch(1 + tokens.nbytes // 2**16)
        return tokens

    def used(self, side: str) -> set[int]:
        """Returns the ids that occur in a side; reads all of it."""
        found: set[int] = set()
        for start in range(0, self.manifest.tokens[side], _BLOCK):
            found.update(np.unique(self.slice(side, start, start + _BLOCK)).tolist())
        return found

    def offset(self, side: str, row: int) -> int:
        """Returns where sentence `row` begins in the whole side; for row = len(store), where the side ends."""
        return int(self._offsets[side][row])

    def lengths(self, side: str) -> NDArray[np.integer]:
        """Returns the number of tokens of every sentence, in memory, in the smallest type that holds them."""
        kind = np.uint16 if self.manifest.longest[side] < 2**16 else np.int32
        lengths: NDArray[np.integer] = np.empty(len(self), dtype=kind)
        for start in range(0, len(self), _BLOCK):
            block = self._offsets[side][start : start + _BLOCK + 1]
            lengths[start : start + _BLOCK] = np.diff(block)
            self.release()
        return lengths

    def line_numbers(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        numbers: NDArray[np.int64] = np.array(self._lines[rows], dtype=np.int64)
        self._touch(len(rows))
        return numbers

    def place(self, number: int) -> tuple[str, int]:
        """Converts a line number of the corpus, as batches carry it, to a file and a line in it."""
        index = bisect_left(self._ends, number)
        if number < 1 or index == len(self._ends):
            raise DataError(f"the corpus has no line {number}; it has lines 1 to {self._ends[-1] if self._ends else 0}")
        return self.manifest.files[index][0], number - (self._ends[index - 1] if index else 0)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(lines for _, lines in self.manifest.files))

    def verify(self) -> None:
        """Compares every file with its hash in the manifest; reads everything."""
        for name, expected in self.manifest.hashes.items():
            with (self.directory / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                    raise StoreDamagedError(f"{self.directory / name} does not match its hash in the manifest")

    def release(self) -> None:
        """Releases the mapped pages; later reads map them again, mostly from the page cache."""
        self._rows_touched = 0
        for mapped in self._maps:
            if hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)

    def _touch(self, rows: int) -> None:
        self._rows_touched += rows
        if self._large and self._rows_touched >= ROWS_BETWEEN_RELEASES:
            self.release()

    def _map(self, name: str, kind: str) -> NDArray[Any]:
        path = self.directory / name
        if path.stat().st_size == 0:
            return np.zeros(0, dtype=kind)  # an empty file cannot be mapped
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.append(mapped)
        return np.frombuffer(mapped, dtype=kind)
