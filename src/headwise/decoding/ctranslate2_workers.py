"""CTranslate2 on an exported model, in the shape that suits the work: one text, or many."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from headwise.bundle.files import read_json
from headwise.errors import ModelError

_BYTES_FOR_A_TEAM = 32_000_000  # of weights: fewer are read from the cache by one core as fast as by several


class Shape(NamedTuple):
    workers: int
    threads: int  # of each


class Workers:
    """One text has the threads that are fastest for it; of many, each core has its own, with one thread."""

    def __init__(self, kind: Callable[..., Any], directory: Path, cores: int = 0) -> None:
        """`kind` is ctranslate2.Translator or Generator."""
        self.cores = cores or _cores()
        self._kind, self._directory, self._lock = kind, directory, Lock()
        self._wide, self._narrow = Shape(self.cores, 1), Shape(1, _threads_of_one(directory))
        self._under_way = 0
        self._loaded = {self._narrow: self._load(self._narrow)}  # a damaged model is told now

    def of(self, texts: int) -> Turn:
        """`with` it: what is to do the work on so many texts, loaded when it is first needed."""
        return Turn(self, texts)

    def begin(self, texts: int) -> Any:
        with self._lock:
            shape = self._narrow if texts == 1 and not self._under_way else self._wide
            if shape not in self._loaded:
                self._loaded[shape] = self._load(shape)
            self._under_way += 1
            return self._loaded[shape]

    def end(self) -> None:
        with self._lock:
            self._under_way -= 1

    def share(self, texts: int, most: int) -> int:
        """Texts of a batch, at most `most`: every worker has as many batches, so that none waits for another."""
        batches = -(-texts // most)
        batches += -batches % self.cores
        return -(-texts // max(1, batches)) or 1

    def _load(self, shape: Shape) -> Any:
        try:
            # No bound on what is queued: whoever asks would wait for it and could not read what is done.
            return self._kind(
                str(self._directory),
                device="cpu",
                inter_threads=shape.workers,
                intra_threads=shape.threads,
                max_queued_batches=-1,
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{self._directory} is not a model that ctranslate2 can read: {error}") from error


class Turn:
    """A piece of work under way, of which there may be several. (`contextmanager` would take longer.)"""

    def __init__(self, workers: Workers, texts: int) -> None:
        self._workers, self._texts = workers, texts

    def __enter__(self) -> Any:
        return self._workers.begin(self._texts)

    def __exit__(self, *_: object) -> None:
        self._workers.end()


def _threads_of_one(directory: Path) -> int:
    """Threads for a single text. With int8 more than one are several times slower; with float32 they help a little
    where a step reads many weights, and hinder a small model."""
    weights = directory / "model.bin"
    small = not weights.is_file() or weights.stat().st_size < _BYTES_FOR_A_TEAM
    return 1 if small or read_json(directory / "export.json")["precision"] == "int8" else _cores()


def _cores() -> int:
    """What this process may use, as told by OMP_NUM_THREADS or the system."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdecimal() and int(told) > 0 else len(os.sched_getaffinity(0))
