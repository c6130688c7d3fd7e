"""Writes the training records for TensorBoard."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from headwise.bundle.run_files import TENSORBOARD
from headwise.training.loop import Hook, Record, Trainer

_SCALARS = ("loss", "log_loss", "perplexity", "rate", "norm", "padding", "bleu", "chrf")
_FLUSH = 15.0  # seconds between flushes


class TensorBoard(Hook):
    """Writes events to RUN/tensorboard; after a resume, later events replace the earlier ones of the same update.

    They are written synchronously: the library's own writer thread dies of a full disk and then blocks the run.
    """

    def __init__(self, run: Path) -> None:
        self.folder = run / TENSORBOARD
        self.writer: Any = None
        self.flushed = 0.0

    def begin(self, trainer: Trainer) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog

        try:
            self.folder.mkdir(exist_ok=True)
            # The library's file name has only the time in seconds, and a run may be resumed within the same second.
            self.writer = EventsWriter(str(self.folder / "events"), f".{os.getpid()}.{trainer.step}")
        except OSError:
            return
        # Makes TensorBoard discard the events from this update on, which were written before the run was resumed.
        self._write(trainer.step + 1, session_log=SessionLog(status=SessionLog.START))

    def on_record(self, trainer: Trainer, record: Record) -> None:
        if record["event"] not in ("train", "validation"):
            return
        from tensorboardX.summary import scalar

        for name, value in record.items():
            kind, _, part = name.partition(" ")  # 'bleu', or 'bleu de-en' of a part of a mixture
            if kind in _SCALARS:
                tag = "/".join(filter(None, (record["event"], kind, part)))
                self._write(record["step"], summary=scalar(tag, value))
        if time.monotonic() > self.flushed + _FLUSH:
            self.flushed = time.monotonic()
            self._do("flush")

    def end(self, trainer: Trainer) -> None:
        self._do("close")

    def _write(self, step: int, **content: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._do("write_event", Event(wall_time=time.time(), step=step, **content))

    def _do(self, what: str, *arguments: Any) -> None:
        """Calls the writer; if it fails, the run continues without TensorBoard, since the log has the same records."""
        try:
            if self.writer is not None:
                getattr(self.writer, what)(*arguments)
        except OSError:
            self.writer = None
