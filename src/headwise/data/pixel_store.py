"""The pixel store: pictures in their final size as bytes in a memory-mapped file, written once and reused.

    <cache>/<key>/
        pixels      uint8, picture after picture, (size, size, channels) each
        labels      int64, the number of each picture's class
        hashes      uint64 of each picture's pixels, by which copies are found
        places      int64, file and line of each picture: a number into `files` and the line
        names       JSON: the files
        manifest.json   sizes, hashes, counts; written last, so it marks the store as complete

A part of a store (training, validation) is a directory with the numbers of its pictures alone, beside the whole.
Mapped pages are released while they are read, so the memory in use does not grow with the number of pictures.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.data.cached import HashedFile, StoreDamagedError, cached
from headwise.errors import DataError
from headwise.files import sync
from headwise.image.reading import BadPicture, Pixels
from headwise.image.sources import Labelled
from headwise.text.filters import FilterCounts

FORMAT, MANIFEST = 1, "manifest.json"
RELEASE_BYTES = 64 * 2**20  # read between two releases of mapped pages
_BLOCK = 4096  # pictures at a time when all are read

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PixelManifest:
    """Describes a store without reading it."""

    shape: tuple[int, ...]  # pictures, size, size, channels
    dropped: dict[str, int]  # pictures that were not kept, by reason
    sizes: dict[str, int]  # bytes of each file
    hashes: dict[str, str]
    about: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    @classmethod
    def read(cls, directory: Path) -> PixelManifest:
        try:
            values = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
            values["shape"] = tuple(int(size) for size in values["shape"])
            manifest = cls(**values)
            whole = all((directory / name).stat().st_size == size for name, size in manifest.sizes.items())
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreDamagedError(f"{directory}: {error}") from error
        if manifest.format != FORMAT or not whole or len(manifest.shape) != 4:
            raise StoreDamagedError(f"{directory}: the format is unknown or a file is truncated")
        return manifest


class PixelStore:
    """Pictures of one size with their labels, or some of those of another store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        whole, chosen = _part(directory)
        self.manifest = PixelManifest.read(whole)
        count, *self._shape = self.manifest.shape
        self._rows = np.arange(count) if chosen is None else chosen
        self._labels = np.fromfile(whole / "labels", dtype=np.int64)
        self._places = np.fromfile(whole / "places", dtype=np.int64).reshape(-1, 2)
        self._names: list[str] = json.loads((whole / "names").read_text(encoding="utf-8"))
        self._whole, self._read = whole, 0
        self._map: mmap.mmap | None = None
        if count:
            with (whole / "pixels").open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._pixels: Pixels = np.frombuffer(self._map or b"", dtype=np.uint8).reshape(count, *self._shape)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size(self) -> int:
        """Height and width."""
        return self._shape[0]

    @property
    def channels(self) -> int:
        return self._shape[2]

    @property
    def counts(self) -> FilterCounts:
        """Of the whole store."""
        return FilterCounts(self.manifest.shape[0], dict(self.manifest.dropped))

    def pixels(self, rows: NDArray[np.integer]) -> Pixels:
        """Copies pictures: (rows, size, size, channels)."""
        taken: Pixels = self._pixels[self._rows[rows]]
        self._read += taken.nbytes
        if self._read > RELEASE_BYTES:
            self.release()
        return taken

    def labels(self, rows: NDArray[np.integer] | None = None) -> Ints:
        chosen = self._rows if rows is None else self._rows[rows]
        return self._labels[chosen]

    def numbers(self, rows: NDArray[np.integer]) -> Ints:
        """Numbers for `place`, from 1: what batches carry."""
        return np.asarray(self._rows[rows] + 1, dtype=np.int64)

    def place(self, number: int) -> tuple[str, int]:
        """The file of a picture and the line, or the number in an idx file, from 1."""
        if not 1 <= number <= len(self._places):
            raise DataError(f"there is no picture {number}; there are {len(self._places)}")
        file, line = self._places[number - 1]
        return self._names[file], int(line)

    def picture_hashes(self) -> NDArray[np.uint64]:
        """One number per picture, equal for equal pixels."""
        return np.fromfile(self._whole / "hashes", dtype=np.uint64)[self._rows]

    def mean_and_std(self, most: int = 20_000) -> tuple[list[float], list[float]]:
        """Of each channel, in fractions of 255, over at most so many pictures at equal distances."""
        rows = np.arange(len(self))[:: max(1, len(self) // most)]
        total, squares, count = np.zeros(self.channels), np.zeros(self.channels), 0
        for start in range(0, len(rows), _BLOCK):
            block = self.pixels(rows[start : start + _BLOCK]).reshape(-1, self.channels) / 255.0
            total, squares, count = total + block.sum(axis=0), squares + (block**2).sum(axis=0), count + len(block)
        mean = total / max(count, 1)
        std = np.sqrt(np.maximum(squares / max(count, 1) - mean**2, 0.0))
        return [round(float(x), 4) for x in mean], [round(max(float(x), 0.01), 4) for x in std]

    def release(self) -> None:
        """Releases the mapped pages; later reads map them again, mostly from the page cache."""
        self._read = 0
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def write_pixels(
    directory: Path,
    pictures: Iterable[Labelled],
    labels: Mapping[str, int],
    shape: tuple[int, int, int],
    about: Mapping[str, Any],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Writes pictures, of which those that cannot be read are counted by their reason; one at a time is held."""
    dropped: dict[str, int] = {}
    names: dict[str, int] = {}
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(HashedFile(directory / name)) for name in ("pixels", "labels", "hashes", "places")
        }
        kept = 0
        for number, picture in enumerate(pictures, start=1):
            if isinstance(picture.pixels, BadPicture):
                dropped[picture.pixels.reason] = dropped.get(picture.pixels.reason, 0) + 1
            else:
                kept += 1
                place = names.setdefault(picture.file, len(names))
                digest = blake2b(np.ascontiguousarray(picture.pixels).data, digest_size=8).digest()
                files["pixels"].write(picture.pixels)
                files["labels"].write(np.array([labels[picture.label]], dtype=np.int64))
                files["hashes"].write(np.frombuffer(digest, dtype=np.uint64))
                files["places"].write(np.array([place, picture.line], dtype=np.int64))
            if progress is not None and number % 256 == 0:
                progress(number)
        for file in files.values():
            file.finish()
        sizes, hashes = ({name: getattr(file, kind) for name, file in files.items()} for kind in ("size", "hash"))
    (directory / "names").write_text(json.dumps(list(names), ensure_ascii=False), encoding="utf-8")
    manifest = PixelManifest((kept, *shape), dropped, sizes, hashes, dict(about))
    (directory / MANIFEST).write_text(json.dumps(vars(manifest), indent=2, ensure_ascii=False), encoding="utf-8")
    for name in ("names", MANIFEST):
        sync(directory / name)


def part_of(store: PixelStore, name: str, rows: NDArray[np.integer]) -> PixelStore:
    """Some pictures of a store as a store of their own, beside it."""
    chosen = np.asarray(store._rows[rows], dtype=np.int64)

    def write(directory: Path) -> None:
        (directory / "rows").write_bytes(chosen.tobytes())
        (directory / "whole").write_text(store.directory.name, encoding="utf-8")

    key = blake2b(chosen.tobytes(), digest_size=8).hexdigest()
    return cached(store.directory.parent, f"{store.directory.name}-{name}-{key}", write, PixelStore, "pixel store")


def _part(directory: Path) -> tuple[Path, Ints | None]:
    """The directory of the whole store, and the rows of it that are chosen; None: all."""
    try:
        whole = (directory / "whole").read_text(encoding="utf-8")
        return directory.parent / whole, np.fromfile(directory / "rows", dtype=np.int64)
    except FileNotFoundError:
        return directory, None
    except (OSError, ValueError) as error:
        raise StoreDamagedError(f"{directory}: {error}") from error
