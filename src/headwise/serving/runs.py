"""Reads the state, recipe and log of training runs, also while they are running."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headwise.bundle.run_files import FINISHED, LOCK, LOG, RECIPE, TIMES
from headwise.training.verdict import DID_NOT_LEARN

RunState = Literal["running", "finished", "failed", "stopped"]
MAX_VERDICT = 64 * 1024  # bytes of the file that says how a run ended
MAX_RECORDS = 5_000  # per answer; the client asks again for the rest
MAX_RUNS = 200
TAIL = 64 * 1024  # bytes at the end of a log that are read to find its last step


@dataclass(frozen=True)
class Run:
    """Reads one run directory."""

    name: str
    path: Path

    @property
    def state(self) -> RunState:
        if (self.path / FINISHED).is_file():
            return "failed" if self.verdict.startswith(DID_NOT_LEARN) else "finished"
        return "running" if _is_locked(self.path / LOCK) else "stopped"

    @property
    def verdict(self) -> str:
        """What the run said of itself when it ended: whether it learned, and what to change; empty until then."""
        try:
            with (self.path / FINISHED).open("rb") as stream:
                ended = _record(stream.read(MAX_VERDICT))
        except OSError:
            return ""
        said = (ended or {}).get("verdict")
        return said if isinstance(said, str) else ""

    def summary(self) -> dict[str, Any]:
        log = self.path / LOG
        return {
            "name": self.name,
            "state": self.state,
            "step": self._last_step(),
            "steps": self._steps(),
            "updated": log.stat().st_mtime,
        }

    def recipe(self) -> str:
        try:
            return (self.path / RECIPE).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def records(self, after: int) -> tuple[list[dict[str, Any]], int]:
        """Returns the records from line `after` on, and the line to continue from. An unfinished line is left out."""
        found: list[dict[str, Any]] = []
        place = -1
        for place, line in enumerate(_lines(self.path / LOG)):
            if place < after:
                continue
            if place - after >= MAX_RECORDS:
                return self._timed(found), place
            record = _record(line)
            if record is not None:
                found.append(record)
        return self._timed(found), max(after, place + 1)

    def _timed(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Adds time and speed to the training records; a run keeps these in a separate file."""
        if not records or not (self.path / TIMES).is_file():
            return records
        found = [time for line in _lines(self.path / TIMES) if (time := _record(line)) is not None]
        times = {time["step"]: time for time in found if isinstance(time.get("step"), int)}
        return [
            {**times.get(record["step"], {}), **record}
            if record.get("event") == "train" and isinstance(record.get("step"), int)
            else record
            for record in records
        ]

    def _last_step(self) -> int:
        with (self.path / LOG).open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - TAIL))
            lines = stream.read(TAIL).split(b"\n")
        steps = [record.get("step") for line in reversed(lines) if (record := _record(line)) is not None]
        return next((step for step in steps if isinstance(step, int)), 0)

    def _steps(self) -> int | None:
        try:
            steps = tomllib.loads(self.recipe()).get("training", {}).get("steps")
        except (tomllib.TOMLDecodeError, AttributeError):
            return None
        return steps if isinstance(steps, int) else None


def list_runs(folder: Path | None) -> dict[str, Run]:
    """Finds the run directories in a folder, or the folder itself if it is one; the newest first."""
    if folder is None:
        return {}
    paths = [folder] if (folder / LOG).is_file() else [path.parent for path in folder.glob(f"*/{LOG}")]
    runs = [Run(path.resolve().name, path) for path in paths if (path / LOG).is_file()]
    runs.sort(key=lambda run: -(run.path / LOG).stat().st_mtime)
    return {run.name: run for run in runs[:MAX_RUNS]}


def _lines(log: Path) -> Iterator[bytes]:
    with log.open("rb") as stream:
        yield from (line for line in stream if line.endswith(b"\n"))


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        # JSON has no NaN or infinity: the page gets null.
        value = json.loads(line, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_locked(lock: Path) -> bool:
    """Tells whether a process holds the lock, without taking it: that could stop a run that is just starting."""
    try:
        number = f":{lock.stat().st_ino}"
        held = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    return any("FLOCK" in line and "WRITE" in line and any(p.endswith(number) for p in line.split()) for line in held)
