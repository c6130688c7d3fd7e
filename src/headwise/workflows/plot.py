"""`headwise plot`: reads the logs of runs and draws their curves."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwise.bundle.run_files import LOG, TIMES
from headwise.errors import DataError, UsageError
from headwise.look.curves import NONE, Course, Points, curves_picture

SCORES = {"bleu": "BLEU", "chrf": "chrF"}


def plot(runs: Sequence[Path], output: Path) -> None:
    """Draws the curves of the runs together into a .png or .svg file."""
    if not runs:
        raise UsageError("no run to plot: give a directory that headwise train wrote, such as runs/my-recipe")
    courses = [read_course(run, name) for run, name in zip(runs, _names(runs), strict=True)]
    if not output.parent.is_dir():
        raise UsageError(f"{output} cannot be written: there is no such folder")
    curves_picture(courses, output)


def _names(runs: Sequence[Path]) -> list[str]:
    """Shortens the paths to the last parts that distinguish them."""
    paths = [run.resolve().parts for run in runs]
    for length in range(1, max(map(len, paths))):
        names = ["/".join(path[-length:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(run) for run in runs]  # the same run is given twice


def read_course(run: Path, name: str) -> Course:
    """Reads the log.jsonl and times.jsonl of a run."""
    log = run / LOG
    if not log.is_file():
        problem = f"has no {LOG}" if run.is_dir() else "does not exist"
        raise UsageError(f"{run} {problem}; give a directory that headwise train wrote")
    records = _records(log)
    training = [r for r in records if r[1].get("event") == "train"]
    validation = [r for r in records if r[1].get("event") == "validation"]
    if not training and not validation:
        raise UsageError(f"{log} has nothing to plot yet: the first record comes after training.log_every updates")
    scores = {shown: _points(log, validation, key) for key, shown in SCORES.items()}
    times = _records(run / TIMES) if (run / TIMES).is_file() else []
    return Course(
        name,
        training=_points(log, training, "log_loss"),
        validation=_points(log, validation, "log_loss"),
        scores={shown: points for shown, points in scores.items() if points[0]},
        rate=_points(log, training, "rate"),
        speed=_points(run / TIMES, times, "tokens_per_second"),
    )


def _records(file: Path) -> list[tuple[int, dict[str, Any]]]:
    """Returns pairs of (line number, record). An incomplete last line is ignored: it may still be being written."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError("this is not a log of headwise train: it is not UTF-8", file=file) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=file) from None
    lines = text.split("\n")
    records = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise DataError("not a record of headwise train; fix or remove this line", file=file, line=number)
        records.append((number, record))
    return records


def _points(file: Path, records: Sequence[tuple[int, dict[str, Any]]], key: str) -> Points:
    """Collects (update, value); if a resumed run logged an update twice, the later record counts."""
    found: dict[int, float] = {}
    for line, record in records:
        if key not in record:
            continue
        step, value = record.get("step"), record[key]
        if type(step) is not int or not (value is None or type(value) in (int, float)):
            raise DataError(f"this record has no number for step or {key}; fix or remove it", file=file, line=line)
        found[step] = math.nan if value is None else float(value)
    return (sorted(found), [found[step] for step in sorted(found)]) if found else NONE
