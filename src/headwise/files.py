"""Writes files atomically (complete or absent, never partial); reads ordinary files of bounded size only."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TextIO

from headwise.errors import UsageError, WorkFailed

_BLOCK = 1 << 20  # bytes that are read at once


def check_name(path: str | Path) -> None:
    """Refuses a name that the system cannot hold; Path.exists and its like would raise an OSError for it."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"the file name '{shortened(str(path))}' is longer than the system allows") from None
    except ValueError:
        raise UsageError(f"the file name '{shortened(str(path))}' has a NUL character in it") from None


def shortened(text: str, longest: int = 120) -> str:
    """Its beginning and end, so that a message stays one line that can be read."""
    return text if len(text) <= longest else f"{text[: longest - 30]}…{text[-25:]}"


@contextmanager
def opened_file(path: str | Path, most: int | None = None) -> Iterator[BufferedReader]:
    """Opens an ordinary file for reading. Anything else is an OSError: a pipe would hang, a device has no end.

    What is looked at is what is read: the file is opened first, without waiting, and then asked what it is. `most`
    bounds its size in bytes.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
    with os.fdopen(handle, "rb") as stream:
        if most is not None and status.st_size > most:
            size = f"it has {status.st_size:,} bytes, more than the {most:,} that it may have"
            raise OSError(errno.EFBIG, size, str(path))
        yield stream


def read_bounded(path: str | Path, most: int) -> bytes:
    """The content of an ordinary file of at most `most` bytes; OSError otherwise."""
    with opened_file(path, most) as stream:
        content = stream.read(min(most, os.fstat(stream.fileno()).st_size) + 1) or b""
    if len(content) > most:  # it grew since it was looked at
        raise OSError(errno.EFBIG, f"it has more than the {most:,} bytes that it may have", str(path))
    return content


def file_hash(path: str | Path, most: int | None = None) -> str:
    """SHA-256 of an ordinary file of at most `most` bytes; OSError otherwise."""
    digest = hashlib.sha256()
    with opened_file(path, most) as stream:
        left = os.fstat(stream.fileno()).st_size
        while left and (block := stream.read(min(left, _BLOCK))):
            digest.update(block)
            left -= len(block)
        if left or stream.read(1) != b"":  # of /proc, say, or somebody writes to it
            raise OSError(errno.EINVAL, "it does not have the size that the system says", str(path))
    return digest.hexdigest()


def check_place(path: Path) -> None:
    """Refuses a path where no file can be written, before any work is done for it."""
    check_name(path)
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


@contextmanager
def locked_file(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Holds the lock of a file that is made for it. Without `wait`, a lock that another process holds is an OSError."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "its lock file is not an ordinary file", str(path))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except OSError:
            pass  # a file system without locks: the last one wins
        yield
    finally:
        os.close(handle)
