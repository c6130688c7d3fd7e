"""Writes a store atomically, by one writer at a time, or opens it if it is there: token ids, pixels, features.

The files are written to a temporary directory, synced, and only then renamed to the key. A crash leaves a directory
that is never mistaken for a store; the next writer of the same key removes it. A lock (released by the system when its
process ends) makes a second writer wait for the first and then use its result; where locks do not work, both write and
one rename wins.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from headwise.errors import WorkFailed
from headwise.files import sync

Opened = TypeVar("Opened")


class StoreDamagedError(Exception):
    """The directory is not a complete store of this version; it has to be written again from the data."""


def cached(
    cache: Path, key: str, write: Callable[[Path], None], open_: Callable[[Path], Opened], what: str = "store"
) -> Opened:
    """Opens the store of this key; if it is missing or incomplete, has `write` fill a new directory first.

    `open_` raises a StoreDamagedError for what is not a complete store; `what` is its name in messages.
    """
    final = cache / key
    with suppress(StoreDamagedError):
        return open_(final)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / f"{key}.lock") as alone:
            with suppress(StoreDamagedError):  # written while this process waited for the lock
                return open_(final)
            for leftover in [final, *(cache.glob(f".{key}.*") if alone else ())]:
                shutil.rmtree(leftover, ignore_errors=True)
            _write_whole(final, write, open_, what)
    except OSError as error:
        raise WorkFailed(
            f"cannot write the {what} {final} ({error.strerror or error}); free some space or use another folder"
        ) from error
    return open_(final)


def _write_whole(final: Path, write: Callable[[Path], None], open_: Callable[[Path], Any], what: str) -> None:
    partial = final.with_name(f".{final.name}.{uuid4().hex}")
    partial.mkdir()
    try:
        write(partial)
        sync(partial)
        try:
            partial.rename(final)
        except OSError:
            open_(final)  # without a working lock another writer may have been first; its store is just as good
        sync(final.parent)
    except StoreDamagedError as error:
        raise WorkFailed(f"{final} exists but is not a {what}; remove it") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


class HashedFile:
    """A file of a store, with its size and SHA-256."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sum = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> HashedFile:
        self._file: BinaryIO = self._path.open("wb")
        return self

    def write(self, values: NDArray[Any]) -> None:
        data = np.ascontiguousarray(values).view(np.uint8).data if values.size else b""
        self._file.write(data)
        self._sum.update(data)
        self.size += values.nbytes

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    @property
    def hash(self) -> str:
        return self._sum.hexdigest()

    def __exit__(self, *_: object) -> None:
        self._file.close()


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Waits for the lock; yields False if the file system (some network ones) has no locks."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            yield False
        else:
            yield True
