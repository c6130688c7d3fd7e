"""Writes files atomically: a file is complete or absent, never partial."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from headwise.errors import UsageError, WorkFailed


def check_place(path: Path) -> None:
    """Refuses a path where no file can be written, before any work is done for it."""
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(
            f"{path} cannot be written: {'it is a directory' if path.is_dir() else 'there is no such folder'}; "
            "choose another path"
        )


@contextmanager
def whole_file(file: str | Path) -> Iterator[TextIO]:
    """Opens a temporary file beside `file` for writing and renames it at the end; an error leaves any old file intact.

    Devices and pipes are written to directly.
    """
    path = Path(file)
    check_place(path)
    special = path.exists() and not path.is_file()
    partial = path if special else path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            if not special:
                os.fsync(stream.fileno())
        if not special:
            partial.replace(path)
    except OSError as error:
        raise WorkFailed(
            f"could not write {path}: {error.strerror or error}; free some space or choose another path"
        ) from error
    finally:
        if not special:
            partial.unlink(missing_ok=True)


def write_whole(file: str | Path, content: bytes) -> None:
    """Writes `content` to `file` atomically."""
    with whole_file(file) as stream:
        stream.buffer.write(content)


def sync(path: Path) -> None:
    """Waits until a file or folder is safely on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
