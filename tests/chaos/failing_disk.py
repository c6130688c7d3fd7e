"""Lets the n-th step on the disk fail: an open, mkdir or rename, an fsync, or whatever is written beyond n bytes.

Opens and renames are stopped by an audit hook of Python, which sees them all; writes by the system's own bound on the
size of a file, which the libraries that write by themselves (safetensors) meet as well.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_STEPS = {"open", "os.rename", "os.mkdir"}
_state: dict[str, int] = {"at": -1, "done": 0}
_fsync = os.fsync


def _count() -> None:
    _state["done"] += 1
    if _state["done"] == _state["at"]:
        raise OSError(errno.EIO, "Input/output error")


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _state["at"] >= 0 and event in _STEPS and _writes(event, arguments):
        _count()


def _writes(event: str, arguments: tuple[object, ...]) -> bool:
    """Reading goes on: what is read is the subject of test_damage.py."""
    if event != "open":
        return True
    mode, flags = arguments[1], arguments[2]
    return any(letter in str(mode) for letter in "wax+") if mode else bool(int(str(flags)) & (os.O_WRONLY | os.O_RDWR))


sys.addaudithook(_hook)  # stays, but does nothing outside of `failing`


@contextmanager
def failing(at: int) -> Iterator[dict[str, int]]:
    """The step number `at` fails (0: none does); gives how many were done."""

    def fsync(handle: int) -> None:
        _count()
        _fsync(handle)

    os.fsync = fsync  # type: ignore[assignment]
    _state.update(at=at, done=0)
    try:
        yield _state
    finally:
        os.fsync = _fsync
        _state["at"] = -1


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """No file can grow beyond `most` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
