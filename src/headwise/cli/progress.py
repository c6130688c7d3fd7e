"""Shows progress on standard error if it is a terminal: what is done, how fast, and the time left if known."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def progress(unit: str, total: int | None = None) -> Iterator[Advance]:
    """Yields a function `advance(count)` that moves the bar; shows nothing if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    speed = TextColumn("{task.completed:,} " + unit + ", {task.fields[rate]:,} per second")
    known = (BarColumn(), speed, TimeRemainingColumn())
    columns = known if total is not None else (SpinnerColumn(), speed, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, rate=0)
        yield lambda count: bar.update(task, advance=count, rate=int(bar.tasks[0].speed or 0))
