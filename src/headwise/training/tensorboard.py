"""The same records for TensorBoard."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from headwise.bundle.run_files import TENSORBOARD
from headwise.training.loop import Hook, Record, Trainer

_SCALARS = ("loss", "log_loss", "perplexity", "rate", "norm", "padding", "bleu", "chrf")
_FLUSH = 15.0  # seconds between two times that TensorBoard is shown what there is


class TensorBoard(Hook):
    """Events under RUN/tensorboard; of a run that was resumed the later events count.

    Written here and now, not by the library's own thread: that one dies of a full disk and then blocks the run.
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
            # Not only the second in its name: a run may be resumed within one.
            self.writer = EventsWriter(str(self.folder / "events"), f".{os.getpid()}.{trainer.step}")
        except OSError:
            return
        # Events of later updates, from before a resume, are to be forgotten: from this number on.
        self._write(trainer.step + 1, session_log=SessionLog(status=SessionLog.START))

    def on_record(self, trainer: Trainer, record: Record) -> None:
        if record["event"] not in ("train", "validation"):
            return
        from tensorboardX.summary import scalar

        for name in _SCALARS:
            if name in record:
                self._write(record["step"], summary=scalar(f"{record['event']}/{name}", record[name]))
        if time.monotonic() > self.flushed + _FLUSH:
            self.flushed = time.monotonic()
            self._do("flush")

    def end(self, trainer: Trainer) -> None:
        self._do("close")

    def _write(self, step: int, **content: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._do("write_event", Event(wall_time=time.time(), step=step, **content))

    def _do(self, what: str, *arguments: Any) -> None:
        """These are pictures of the log: where they cannot be written, the run goes on without them."""
        try:
            if self.writer is not None:
                getattr(self.writer, what)(*arguments)
        except OSError:
            self.writer = None
