"""CTranslate2 on an exported model, in the shape that suits the work: one text, or many."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from headwise.bundle.directory import read_json
from headwise.errors import ModelError

_BYTES_FOR_A_TEAM = 32_000_000  # of weights: fewer are read from the cache by one core as fast as by several


class Shape(NamedTuple):
    workers: int
    threads: int  # of each


class Workers:
    """For many texts each core has a worker with one thread. A single text has one of two such workers, or one worker
    with all cores where that is faster."""

    def __init__(self, kind: Callable[..., Any], directory: Path, cores: int = 0) -> None:
        """`kind` is ctranslate2.Translator or Generator."""
        self.cores = cores or _cores()
        self._kind, self._directory, self._lock = kind, directory, Lock()
        self._wide = Shape(self.cores, 1)
        # Two, the second for work beside it: of many, each text would have the next one, and its core's cold cache.
        self._narrow = Shape(1, self.cores) if _is_for_a_team(directory) else Shape(min(2, self.cores), 1)
        self._under_way = 0
        self._loaded = {self._narrow: self._load(self._narrow)}  # a damaged model is told now

    def of(self, texts: int) -> Turn:
        """What is to do the work on so many texts, loaded when it is first needed; `with` it, it is under way."""
        with self._lock:
            shape = self._narrow if texts == 1 and not self._under_way else self._wide
            if shape not in self._loaded:
                self._loaded[shape] = self._load(shape)
        return Turn(self, self._loaded[shape])

    @property
    def leave_a_core(self) -> bool:
        """Whether a core has nothing to do beside a single text."""
        return self._narrow.workers > 1 and not self._under_way

    def count(self, more: int) -> None:
        with self._lock:
            self._under_way += more

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
    """A piece of work, of which several may be under way. (`contextmanager` would take longer.)"""

    def __init__(self, workers: Workers, worker: Any) -> None:
        self._workers, self.worker = workers, worker

    def __enter__(self) -> Any:
        self._workers.count(1)
        return self.worker

    def __exit__(self, *_: object) -> None:
        self._workers.count(-1)


def _is_for_a_team(directory: Path) -> bool:
    """Whether a single text is faster with several threads. With int8 they are several times slower; with float32 they
    help a little where a step reads many weights, and hinder a small model."""
    weights = directory / "model.bin"
    small = not weights.is_file() or weights.stat().st_size < _BYTES_FOR_A_TEAM
    return not small and read_json(directory / "export.json")["precision"] != "int8"


def _cores() -> int:
    """What this process may use, as told by OMP_NUM_THREADS or the system."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdecimal() and int(told) > 0 else len(os.sched_getaffinity(0))
