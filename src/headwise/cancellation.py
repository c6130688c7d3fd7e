"""Lets whoever asked for long work cancel it, or hold it for a while so that other work gets a turn.

Loops call `check_cancelled` once per step: per decoding step, per batch, per panel of a page. It does nothing, unless
the work runs inside of `cancellable`, which says what to do there: return, wait, or raise Cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]


class Cancelled(Exception):
    """Raised by `check_cancelled` when nobody waits for the result any more."""


def _nothing() -> None:
    return


_check: ContextVar[Check] = ContextVar("check", default=_nothing)


def check_cancelled() -> None:
    """Raises Cancelled if the work is no longer wanted; may wait while other work has its turn."""
    _check.get()()


@contextmanager
def cancellable(check: Check) -> Iterator[None]:
    """Calls `check` at every `check_cancelled` within the block, in the same thread."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)
