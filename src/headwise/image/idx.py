"""Reads idx files, the format of MNIST and Fashion-MNIST: a header, then bytes; compressed with gzip or not."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from headwise.errors import DataError
from headwise.files import opened_file

_BYTES = 0x08  # the code of unsigned bytes, the only kind of number here
_MOST_AXES = 4
MOST_PIXELS = 4096 * 4096 * 3  # of one picture
_BLOCK = 4 << 20  # bytes read at a time


@dataclass(frozen=True)
class IdxFile:
    """An idx file of unsigned bytes whose header has been checked."""

    path: str
    shape: tuple[int, ...]

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Yields rows, a few megabytes at a time; a file that is shorter or longer than its header says is refused."""
        row = math.prod(self.shape[1:])
        rows = max(1, _BLOCK // max(1, row))
        with _opened(self.path) as stream:
            _read(stream, 4 + 4 * len(self.shape), self.path)
            for start in range(0, self.shape[0], rows):
                count = min(rows, self.shape[0] - start)
                content = _read(stream, count * row, self.path)
                yield np.frombuffer(content, dtype=np.uint8).reshape(count, *self.shape[1:])
            if _read(stream, 1, self.path, whole=False):
                raise DataError(
                    f"has more data than its header says: {self._said}; take another copy of it", file=self.path
                )

    @property
    def _said(self) -> str:
        return " × ".join(map(str, self.shape))


def open_idx(path: str | Path) -> IdxFile:
    """Reads the header."""
    name = str(path)
    with _opened(name) as stream:
        magic = _read(stream, 4, name)
        axes = magic[3]
        if magic[:2] != b"\0\0" or magic[2] != _BYTES or not 1 <= axes <= _MOST_AXES:
            raise DataError("is not an idx file of unsigned bytes, such as MNIST's", file=name)
        shape = tuple(int(size) for size in np.frombuffer(_read(stream, 4 * axes, name), dtype=">u4"))
    if any(size < 1 for size in shape) or math.prod(shape[1:]) > MOST_PIXELS:
        said = " × ".join(map(str, shape))
        raise DataError(f"says that it has {said} bytes, which cannot be pictures or labels", file=name)
    return IdxFile(name, shape)


def is_idx(path: str | Path) -> bool:
    """Whether a file is meant to be one, by its name."""
    name = Path(path).name.removesuffix(".gz")
    return "-idx" in name or name.endswith((".idx", "-ubyte", ".idx1", ".idx3"))


def labels_beside(images: str | Path) -> Path:
    """The file with the labels of a file with pictures, by the names that MNIST uses."""
    path = Path(images)
    name = path.name.replace("images", "labels").replace("idx3", "idx1").replace("idx4", "idx1")
    stem = name.removesuffix(".gz")
    for candidate in (name, stem, f"{stem}.gz"):
        if candidate != path.name and (path.parent / candidate).is_file():
            return path.parent / candidate
    raise DataError(f"its labels are missing: there is no {name} beside it", file=path)


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    try:
        with opened_file(path) as stream:
            packed = stream.peek(2)[:2] == b"\x1f\x8b"
            if packed:
                with gzip.GzipFile(fileobj=stream) as unpacked:
                    yield unpacked  # type: ignore[misc]
            else:
                yield stream
    except FileNotFoundError:
        raise DataError("there is no such file; check its name", file=path) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be read ({error}); take another copy of it", file=path) from error


def _read(stream: IO[bytes], count: int, path: str, whole: bool = True) -> bytes:
    content = stream.read(count)
    if whole and len(content) < count:
        raise DataError("ends before its header says; take another copy of it", file=path)
    return content
