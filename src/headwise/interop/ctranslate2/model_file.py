"""CTranslate2's model.bin: the header of each tensor is checked first, then tensors are read one at a time.

    version (4 bytes), name of the specification, its revision (4)
    number of variables (4), and for each: name, rank (1), dimensions (4 each), type (1), bytes (4), the numbers
    number of aliases (4), and for each: alias, name of the variable that it stands for

A name is its length (2 bytes, the NUL at its end included) and its bytes. All numbers are little-endian. Up to version
3 there is a size of an item instead of a type, and their number instead of bytes; up to version 2 there are no aliases.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import ModelError
from headwise.files import opened_file, shortened

NEWEST_VERSION = 6
MOST_AXES = 8
LONGEST_NAME = 1000  # bytes
# By the number that stands for a type. numpy has no bfloat16: it is the upper half of a float32.
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
_OLD_TYPES = {4: "float32", 2: "int16", 1: "int8"}  # by the size of an item
_SIZES = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "float16": 2, "bfloat16": 2}
_WHOLE = ("int8", "int16", "int32")

Array = NDArray[Any]


@dataclass(frozen=True)
class Variable:
    """Where a tensor is in the file."""

    shape: tuple[int, ...]
    type: str
    start: int  # of its numbers, in bytes

    @property
    def bytes(self) -> int:
        return prod(self.shape) * _SIZES[self.type]


@dataclass(frozen=True)
class ModelFile:
    """The tensors of a model.bin by name; an alias is a name too."""

    file: Path
    specification: str  # such as TransformerSpec or WhisperSpec
    revision: int
    variables: dict[str, Variable]

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def shape(self, name: str) -> tuple[int, ...]:
        return self._find(name).shape

    def stored(self, name: str) -> Array:
        """The numbers as they are in the file, but bfloat16 as float32."""
        variable = self._find(name)
        kind = {"bfloat16": "<u2", "float32": "<f4", "float16": "<f2"}.get(variable.type)
        try:
            with opened_file(self.file) as stream:
                stream.seek(variable.start)
                content = stream.read(variable.bytes)
        except OSError as error:
            raise ModelError(f"{self.file} cannot be read: {error.strerror or error}") from error
        if len(content) < variable.bytes:
            raise _damaged(self.file, f"{name} is cut off")
        found = np.frombuffer(content, dtype=kind or f"<i{_SIZES[variable.type]}")
        if variable.type == "bfloat16":
            found = (found.astype(np.uint32) << 16).view(np.float32)
        return found.reshape(variable.shape)

    def floats(self, name: str) -> NDArray[np.float32]:
        """A tensor as float32. Whole numbers are divided by their scale (`name_scale`): one per row, or one for all."""
        values, scale = self.stored(name), f"{name}_scale"
        if self._find(name).type not in _WHOLE:
            return values.astype(np.float32, copy=False)
        if f"{name}_zero" in self or scale not in self:
            raise ModelError(
                f"{self.file}: {name} is quantised in a way that Headwise does not read; convert the model to float32, "
                "float16 or int8"
            )
        scales = self.stored(scale).astype(np.float32)
        rows = (-1, *(1 for _ in values.shape[1:])) if scales.size > 1 else ()
        if scales.size not in (1, values.shape[0] if values.shape else 1) or not bool((scales > 0).all()):
            raise _damaged(self.file, f"the scales of {name} do not fit")
        return values.astype(np.float32) * np.reciprocal(scales).reshape(rows)

    def number(self, name: str, default: float | None = None) -> float:
        """A tensor of one number: a setting of the model."""
        if default is not None and name not in self:
            return default
        values = self.stored(name)
        if values.size != 1:
            raise _damaged(self.file, f"{name} is not one number")
        return float(values.reshape(()))

    def _find(self, name: str) -> Variable:
        if name not in self.variables:
            raise ModelError(f"{self.file} lacks {name}; take another copy of the model")
        return self.variables[name]


def open_model_file(file: Path) -> ModelFile:
    """Reads all headers; every tensor is inside of the file. Nothing is allocated for what a header declares."""
    try:
        with opened_file(file) as stream:
            return _Reader(file, stream).read()
    except FileNotFoundError:
        raise ModelError(f"{file} is not there; give a directory of CTranslate2, with its {file.name}") from None
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror or error}") from error


class _Reader:
    """One pass over the file; the numbers themselves are skipped."""

    def __init__(self, file: Path, stream: BufferedReader) -> None:
        self.file, self.stream = file, stream
        self.end = stream.seek(0, 2)
        stream.seek(0)

    def read(self) -> ModelFile:
        version = self._number(4)
        if not 1 <= version <= NEWEST_VERSION:
            raise ModelError(
                f"{self.file} is not a model.bin of CTranslate2, or of a newer version than Headwise reads "
                f"({version}, the newest is {NEWEST_VERSION})"
            )
        name, revision = (self._name(), self._number(4)) if version >= 2 else ("", 1)
        variables: dict[str, Variable] = {}
        for key, variable in self._variables(version):
            if key in variables:
                raise _damaged(self.file, f"{shortened(key)} occurs in it twice")
            variables[key] = variable
        if version >= 3:
            for _ in range(self._number(4)):
                alias, target = self._name(), self._name()
                if target not in variables:
                    raise _damaged(self.file, f"{shortened(alias)} stands for {shortened(target)}, which is not there")
                for ending in ("", "_scale", "_zero"):
                    if f"{target}{ending}" in variables:
                        variables.setdefault(f"{alias}{ending}", variables[f"{target}{ending}"])
        if self.stream.tell() != self.end:
            raise _damaged(self.file, "it is longer than its content")
        return ModelFile(self.file, name, revision, variables)

    def _variables(self, version: int) -> Iterator[tuple[str, Variable]]:
        for _ in range(self._number(4)):  # a number that is too large ends with the file
            name = self._name()
            axes = self._number(1)
            if axes > MOST_AXES:
                raise _damaged(self.file, f"{shortened(name)} has {axes} axes")
            shape = tuple(self._number(4) for _ in range(axes))
            kind, count = self._number(1), self._number(4)
            known = dict(enumerate(TYPES)) if version >= 4 else _OLD_TYPES
            if kind not in known:
                raise _damaged(self.file, f"{shortened(name)} has the unknown type {kind}")
            variable = Variable(shape, known[kind], self.stream.tell())
            if count * (1 if version >= 4 else kind) != variable.bytes:
                raise _damaged(self.file, f"{shortened(name)} does not have the size of its shape {list(shape)}")
            if variable.start + variable.bytes > self.end:
                raise _damaged(self.file, f"{shortened(name)} is cut off")
            self.stream.seek(variable.bytes, 1)
            yield name, variable

    def _number(self, size: int) -> int:
        return int.from_bytes(self._bytes(size), "little")

    def _name(self) -> str:
        (size,) = struct.unpack("<H", self._bytes(2))
        if not 1 <= size <= LONGEST_NAME:
            raise _damaged(self.file, f"a name has {size} bytes")
        try:
            return self._bytes(size).rstrip(b"\0").decode()
        except UnicodeDecodeError:
            raise _damaged(self.file, "a name is not UTF-8") from None

    def _bytes(self, size: int) -> bytes:
        content = self.stream.read(size)
        if len(content) < size:
            raise _damaged(self.file, "it ends too early")
        return content


def _damaged(file: Path, why: str) -> ModelError:
    return ModelError(f"{file} is cut off or damaged: {why}; take another copy of the model")
