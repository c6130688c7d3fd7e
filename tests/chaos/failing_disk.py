"""Lets something happen at the n-th step on the disk: an open for writing, mkdir, rename, removal or fsync.

Opens and renames are seen by an audit hook of Python, which sees them all; what is written beyond n bytes fails by the
system's own bound on the size of a file, which the libraries that write by themselves (safetensors) meet as well.
test_failing_calls.py goes deeper, with a compiler.
"""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_WRITING = {"open", "os.rename", "os.mkdir"}
_REMOVING = {"os.remove", "os.rmdir"}  # what fails there leaves too much, not too little
_fsync = os.fsync


class Steps:
    """Counts steps while `act` is set, and calls it at the step number `at`."""

    def __init__(self) -> None:
        self.done = self.at = 0
        self.act: Callable[[], None] | None = None
        self.events = _WRITING

    def begin(self, at: int, act: Callable[[], None], events: set[str]) -> None:
        self.done, self.at, self.act, self.events = 0, at, act, events
        os.fsync = self.fsync

    def end(self) -> None:
        self.act, os.fsync = None, _fsync

    def count(self) -> None:
        self.done += 1
        if self.done == self.at and self.act is not None:
            self.act()

    def fsync(self, handle: int) -> None:
        self.count()
        _fsync(handle)

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.act is not None and event in self.events and _writes(event, arguments):
            self.count()


def _writes(event: str, arguments: tuple[object, ...]) -> bool:
    """Reading goes on: what is read is the subject of test_damage.py."""
    if event != "open":
        return True
    mode, flags = arguments[1], arguments[2]
    return any(letter in str(mode) for letter in "wax+") if mode else bool(int(str(flags)) & (os.O_WRONLY | os.O_RDWR))


_steps = Steps()
sys.addaudithook(_steps.hook)  # stays, but does nothing unless it was begun


@contextmanager
def failing(at: int) -> Iterator[Steps]:
    """The step number `at` fails (0: none does); gives how many were done."""

    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error")

    _steps.begin(at, fail, _WRITING)
    try:
        yield _steps
    finally:
        _steps.end()


def kill_at(step: int) -> None:
    """From now on, this process is killed at the given step on the disk."""
    _steps.begin(step, lambda: os.kill(os.getpid(), signal.SIGKILL), _WRITING | _REMOVING)


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


def contents(folder: Path) -> dict[str, str]:
    """Hashes of all files that are not hidden."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*")) if path.is_file()
        if not any(part.startswith(".") for part in path.relative_to(folder).parts) and path.suffix != ".lock"
    }  # fmt: skip
