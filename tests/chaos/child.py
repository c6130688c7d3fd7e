"""Runs a command of `headwise` in a forked child, with bounds on time and memory, and says how it ended."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SECONDS = 20  # of processor time: no command on a small model takes so long
WAIT = 600  # seconds on the clock: only what waits for ever takes longer, however busy the machine
MEMORY = 1 << 30  # bytes beyond what the parent has


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: the signal that killed it) and what it said."""

    code: int
    errors: str
    memory: int  # peak, in bytes beyond the parent's

    @property
    def fine(self) -> bool:
        """It did its work, or said in one line why not; it neither died nor took more memory than it may."""
        lines = self.errors.splitlines()
        one_line = len(lines) >= 1 and lines[-1].startswith("headwise: error: ") and "Traceback" not in self.errors
        return self.memory <= MEMORY and (self.code == 0 or (self.code in (1, 2) and one_line))


def run(arguments: Sequence[object]) -> Ended:
    """`headwise ARGUMENTS…`, in a copy of this process: everything is imported already."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if not child:
            _work([str(argument) for argument in arguments], errors.fileno())
        _, status, usage = os.wait4(child, 0)
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, said, max(0, usage.ru_maxrss * 1024 - before))


def _work(arguments: list[str], errors: int) -> None:
    code = 99
    try:
        signal.alarm(WAIT)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.dup2(errors, 2)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        from headwise.cli import main
        from headwise.serving import server

        server.run = _serve_once
        sys.argv = ["headwise", *arguments]
        main.run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _serve_once(service: Any, *_: object) -> None:
    """In place of a server that never ends: lets every model answer once."""
    problems = [asyncio.run(model.problem()) for model in service.models]
    service.close_queues()
    service.join_queues(WAIT)
    print(*(f"a model is not ready: {problem}" for problem in problems if problem), file=sys.stderr)
