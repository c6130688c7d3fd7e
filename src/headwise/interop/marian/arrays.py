"""Marian's weights (*.npz): an archive of numpy arrays, read one at a time and without pickle."""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwise.errors import ModelError

MOST_ARRAYS, LARGEST_HEADER, LARGEST_TEXT = 10_000, 1 << 16, 1 << 20  # the last two in bytes
_TYPES = {"<f4": np.float32, "<f2": np.float16, "|i1": np.int8, "|u1": np.uint8}
_FAILURES = (OSError, ValueError, EOFError, struct.error, zipfile.BadZipFile, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class Array:
    """Where an array is."""

    member: str
    shape: tuple[int, ...]
    type: str
    start: int  # of its numbers, in the member
    by_columns: bool


@dataclass(frozen=True)
class Arrays:
    """The arrays of a file by name."""

    file: Path
    named: dict[str, Array]

    def read(self, name: str) -> NDArray[np.float32]:
        return self._numbers(self.named[name]).astype(np.float32, copy=False)

    def text(self, name: str) -> str:
        """An array of bytes: the settings that Marian keeps beside the weights."""
        if name not in self.named:
            raise ModelError(f"{self.file} lacks {name}; it is not a model of Marian")
        if prod(self.named[name].shape) > LARGEST_TEXT:
            raise ModelError(f"{self.file}: {name} is too long; take another copy of the model")
        return self._numbers(self.named[name]).tobytes().rstrip(b"\0").decode("utf-8", errors="replace")

    def _numbers(self, array: Array) -> NDArray[np.generic]:
        kind = np.dtype(_TYPES[array.type])
        size = prod(array.shape) * kind.itemsize
        try:
            with zipfile.ZipFile(self.file) as archive, archive.open(array.member) as stream:
                stream.read(array.start)
                content = stream.read(size)
        except _FAILURES as error:
            raise _damaged(self.file, str(error)) from None
        if len(content) < size:
            raise _damaged(self.file, f"{array.member} ends too early")
        values: NDArray[np.generic] = np.frombuffer(content, dtype=kind)
        return values.reshape(array.shape, order="F" if array.by_columns else "C")


def open_arrays(file: Path) -> Arrays:
    """Reads the headers of all arrays; each has the size that its header declares."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > MOST_ARRAYS:
                raise _damaged(file, f"it has {len(members)} arrays")
            return Arrays(file, {one.filename.removesuffix(".npy"): _header(file, archive, one) for one in members})
    except _FAILURES as error:
        raise _damaged(file, str(error)) from None


def _header(file: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, kind = read(stream, max_header_size=LARGEST_HEADER)
        start = stream.tell()
    if kind.str not in _TYPES:
        raise _damaged(file, f"{member.filename} is of type {kind}, which Headwise does not read")
    if prod(shape) * kind.itemsize != member.file_size - start:
        raise _damaged(file, f"{member.filename} does not have the size of its shape {list(shape)}")
    return Array(member.filename, tuple(map(int, shape)), kind.str, start, by_columns)


def _damaged(file: Path, why: str) -> ModelError:
    return ModelError(f"{file} is cut off or damaged: {why}; take another copy of the model")
