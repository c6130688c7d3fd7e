"""Labelled pictures: a folder with a folder per class, a list of files, or idx files.

Everything streams: pictures are decoded a few at a time, on all cores, and are handed on one by one in a fixed order.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from PIL import Image

from headwise.config.cores import decoding_cores
from headwise.errors import DataError
from headwise.files import file_hash
from headwise.image.idx import IdxFile, labels_beside, open_idx
from headwise.image.reading import SUFFIXES, BadPicture, Pixels, from_pixels, read_picture

_IGNORED = ("thumbs.db", "desktop.ini")
_AHEAD = 32  # pictures being decoded or waiting
_LOOKED_AT = 64  # pictures by which is decided whether there are colours
Fit = Callable[[Image.Image], Pixels]
Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A picture as it was prepared, or what is wrong with it."""

    pixels: Pixels | BadPicture
    label: str
    file: str
    line: int  # of the table, or the number of the picture in its idx file, from 1; 1 for a file by itself
    size: tuple[int, int]  # width and height before it was prepared; (0, 0) if it could not be read
    grey: bool


class Source(ABC):
    """Labelled pictures in a fixed order, which can be read any number of times."""

    files: list[str]  # that are read; the fingerprint of the data is of these

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def labels(self) -> list[str]:
        """The label of each picture, without reading the pictures."""

    @abstractmethod
    def pictures(self, fit: Fit) -> Iterator[Labelled]:
        """Reads and prepares every picture."""

    @abstractmethod
    def items(self) -> Iterator[tuple[str | Pixels, str, str]]:
        """Each picture as the name of its file or as pixels, with its label and its place."""

    @abstractmethod
    def places(self) -> Iterable[str]:
        """Where each picture is, in words."""

    @abstractmethod
    def is_grey(self) -> bool:
        """Whether no picture has colours; of many files some are looked at."""

    @property
    def empty_classes(self) -> list[str]:
        """Folders of classes in which there is no picture."""
        return []

    @property
    def ignored(self) -> list[str]:
        """Files that are not pictures, by their names."""
        return []

    def fingerprint(self) -> str:
        """SHA-256 over the contents and the labels, in order."""
        total = hashlib.sha256()
        for file in self.files:
            total.update(file_hash(file).encode())
        for label in self.labels():
            total.update(label.encode("utf-8", "surrogatepass") + b"\n")
        return total.hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """A file with a picture, its label, and where that is said."""

    path: str
    label: str
    file: str
    line: int


class FileSource(Source):
    """Pictures in files of their own."""

    def __init__(
        self, entries: Sequence[Entry], empty_classes: Sequence[str] = (), ignored: Sequence[str] = (),
        tables: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.entries = list(entries)
        self.files = [*tables, *(entry.path for entry in entries)]
        self._empty, self._ignored = list(empty_classes), list(ignored)

    def __len__(self) -> int:
        return len(self.entries)

    def labels(self) -> list[str]:
        return [entry.label for entry in self.entries]

    @property
    def empty_classes(self) -> list[str]:
        return self._empty

    @property
    def ignored(self) -> list[str]:
        return self._ignored

    def pictures(self, fit: Fit) -> Iterator[Labelled]:
        return in_order(lambda entry: _read(entry, fit), self.entries)

    def items(self) -> Iterator[tuple[str | Pixels, str, str]]:
        return ((entry.path, entry.label, entry.file) for entry in self.entries)

    def places(self) -> Iterable[str]:
        return (entry.file for entry in self.entries)

    def is_grey(self) -> bool:
        for entry in self.entries[:: max(1, len(self.entries) // _LOOKED_AT)]:
            try:
                if read_picture(entry.path).mode != "L":
                    return False
            except BadPicture:
                continue  # reported with the pictures
        return True

    def fingerprint(self) -> str:
        """A file that cannot be read counts by its name: it is reported with the pictures."""
        total = hashlib.sha256()
        for entry in self.entries:
            try:
                content = file_hash(entry.path)
            except OSError:
                content = entry.path
            total.update(f"{content} {entry.label}\n".encode("utf-8", "surrogatepass"))
        return total.hexdigest()


class IdxSource(Source):
    """Pictures and labels in two idx files. `names` are those of the labels 0, 1, …; without them they are numbers."""

    def __init__(self, images: str, names: Sequence[str] = ()) -> None:
        self.images, self.names = open_idx(images), list(names)
        self.files = [images, str(labels_beside(images))]
        numbers = open_idx(self.files[1])
        shape = self.images.shape
        if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] not in (1, 3)):
            raise DataError(f"has the shape {' × '.join(map(str, shape))}, not that of pictures", file=images)
        if numbers.shape != shape[:1]:
            raise DataError(
                f"has {numbers.shape[0]:,} labels for {shape[0]:,} pictures in {images}; take another copy of both",
                file=self.files[1],
            )
        self._labels = self._read_labels(numbers)

    def _read_labels(self, numbers: IdxFile) -> list[str]:
        found = [int(number) for block in numbers.blocks() for number in block]
        if self.names and max(found) >= len(self.names):
            raise DataError(
                f"has the label {max(found)}, but only {len(self.names)} classes have names", file=numbers.path
            )
        return [self.names[number] if self.names else str(number) for number in found]

    def __len__(self) -> int:
        return self.images.shape[0]

    def labels(self) -> list[str]:
        return self._labels

    def pictures(self, fit: Fit) -> Iterator[Labelled]:
        grey = self.is_grey()
        height, width = self.images.shape[1:3]
        for number, (pixels, label) in enumerate(zip(self._pixels(), self._labels, strict=True), start=1):
            yield Labelled(fit(from_pixels(pixels)), label, self.files[0], number, (width, height), grey)

    def _pixels(self) -> Iterator[Pixels]:
        for block in self.images.blocks():
            yield from block if block.ndim == 4 else block[..., None]

    def items(self) -> Iterator[tuple[str | Pixels, str, str]]:
        return zip(self._pixels(), self._labels, self.places(), strict=True)

    def places(self) -> Iterable[str]:
        return (f"{self.files[0]}:{number}" for number in range(1, len(self) + 1))

    def is_grey(self) -> bool:
        return len(self.images.shape) == 3 or self.images.shape[3] == 1


class JoinedSource(Source):
    """Several sources, one after the other."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = list(sources)
        self.files = [file for source in sources for file in source.files]

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def labels(self) -> list[str]:
        return [label for source in self.sources for label in source.labels()]

    @property
    def empty_classes(self) -> list[str]:
        return [name for source in self.sources for name in source.empty_classes]

    @property
    def ignored(self) -> list[str]:
        return [name for source in self.sources for name in source.ignored]

    def pictures(self, fit: Fit) -> Iterator[Labelled]:
        for source in self.sources:
            yield from source.pictures(fit)

    def items(self) -> Iterator[tuple[str | Pixels, str, str]]:
        for source in self.sources:
            yield from source.items()

    def places(self) -> Iterable[str]:
        return chain.from_iterable(source.places() for source in self.sources)

    def is_grey(self) -> bool:
        return all(source.is_grey() for source in self.sources)

    def fingerprint(self) -> str:
        return hashlib.sha256("".join(source.fingerprint() for source in self.sources).encode()).hexdigest()


def folder_source(folder: str) -> FileSource:
    """folder/class/**/*.png: the name of the folder is the label."""
    entries: list[Entry] = []
    empty, ignored = [], []
    for label in sorted(os.listdir(folder)):
        place = os.path.join(folder, label)
        if label.startswith(".") or not os.path.isdir(place):
            if _is_picture(label):
                raise DataError("is not in the folder of a class: pictures are read from folder/class/", file=place)
            continue
        before = len(entries)
        for root, folders, files in os.walk(place):
            folders.sort()
            for name in sorted(files):
                path = os.path.join(root, name)
                if _is_picture(name):
                    entries.append(Entry(path, label, path, 1))
                elif not name.startswith(".") and name.lower() not in _IGNORED:
                    ignored.append(path)
        if len(entries) == before:
            empty.append(place)
    return FileSource(entries, empty, ignored)


def in_order(work: Callable[[Given], Made], given: Sequence[Given]) -> Iterator[Made]:
    """Does the work on all cores (decoding releases the interpreter), and yields the results in order."""
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(decoding_cores(), "headwise-pictures") as pool:
        try:
            for one in given:
                waiting.append(pool.submit(work, one))
                if len(waiting) >= _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _read(entry: Entry, fit: Fit) -> Labelled:
    try:
        image = read_picture(entry.path)
    except BadPicture as error:
        return Labelled(error, entry.label, entry.file, entry.line, (0, 0), True)
    return Labelled(fit(image), entry.label, entry.file, entry.line, image.size, image.mode == "L")


def _is_picture(name: str) -> bool:
    return not name.startswith(".") and name.lower().endswith(SUFFIXES)
