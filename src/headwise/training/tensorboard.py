"""The same records for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwise.training.loop import Hook, Record, Trainer

_SCALARS = ("loss", "log_loss", "perplexity", "rate", "norm", "padding", "bleu", "chrf")


class TensorBoard(Hook):
    """Events under RUN/tensorboard; of a run that was resumed the later events count."""

    def __init__(self, run: Path) -> None:
        self.folder = run / "tensorboard"
        self.writer: Any = None

    def begin(self, trainer: Trainer) -> None:
        from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(self.folder), purge_step=trainer.step)

    def on_record(self, trainer: Trainer, record: Record) -> None:
        if record["event"] in ("train", "validation"):
            for name in _SCALARS:
                if name in record:
                    self.writer.add_scalar(f"{record['event']}/{name}", record[name], record["step"])

    def end(self, trainer: Trainer) -> None:
        self.writer.close()
