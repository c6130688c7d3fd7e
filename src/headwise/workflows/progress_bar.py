"""A progress bar for training in a notebook, a script or a terminal."""

from __future__ import annotations

from types import TracebackType

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from headwise.data.batch import Batch
from headwise.training.loop import Hook, Record, Trainer
from headwise.training.step import Update

SHOWN = ("warning", "not saved", "slow")  # records with a message


class ProgressBar(Hook):
    """Shows the update, its loss and the time left; validations are lines above it."""

    def __init__(self) -> None:
        self.bar = Progress(TextColumn("{task.description}"), BarColumn(bar_width=24), TimeRemainingColumn())
        self.task = self.bar.add_task("preparing", total=1.0)

    def __enter__(self) -> ProgressBar:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def say(self, line: str) -> None:
        self.bar.console.print(escape(line), highlight=False, soft_wrap=True)

    def after_update(self, trainer: Trainer, update: Update, batch: Batch) -> None:
        line = f"update {trainer.step:,}  loss {update.log_loss:.3f}"
        self.bar.update(self.task, completed=trainer.progress(), description=line)

    def on_record(self, trainer: Trainer, record: Record) -> None:
        if record["event"] == "validation" and "log_loss" in record:
            self.say(f"validation at update {record['step']:,}: loss {record['log_loss']:.4f}")
        elif record["event"] in SHOWN:
            self.say(f"warning: {record['message']}")
