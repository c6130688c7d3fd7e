"""Shows training on a terminal: a live line, a table at each validation, warnings; elsewhere plain lines."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from headwise.data.batch import Batch
from headwise.training.loop import Hook, Record, Trainer
from headwise.training.step import Update

if TYPE_CHECKING:
    from headwise.workflows.train import Finished

_SMOOTH = 0.95  # smoothing of the live figures
_SILENT = 10.0  # seconds after which a line is printed where there is no terminal, whatever training.log_every says
_WIDE = 110  # columns from which on the live line has all figures; the time left is visible at any width


class Live:
    """A console on standard error; `hook` goes to the trainer."""

    def __init__(self, stream: TextIO) -> None:
        self.console = Console(file=stream, highlight=False)
        self.terminal = self.console.is_terminal
        self.wide = self.console.width >= _WIDE
        bar = BarColumn(bar_width=24 if self.wide else 12)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), bar, TimeRemainingColumn())
        self.bar = Progress(*columns, console=self.console, transient=True, disable=not self.terminal)
        self.task: TaskID | None = None
        self.stage = ""
        self.hook = _LiveHook(self)

    def __enter__(self) -> Live:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def say(self, line: str, style: str = "") -> None:
        self.console.print(escape(line), style=style, soft_wrap=True)

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """Shows progress while data is prepared: stage, items done, total items if known."""
        counted = f"{stage}: {done:,}" + ("" if stage.endswith("s") else " lines")  # a plural says what is counted
        if not self.terminal:
            if total is not None and done >= total:
                self.say(counted)
            return
        if self.task is None or stage != self.stage:
            self.clear()
            self.task = self.bar.add_task(stage, total=total)
            self.stage = stage
        self.bar.update(self.task, completed=done, total=total, description=counted)

    def clear(self) -> None:
        if self.task is not None:
            self.bar.remove_task(self.task)
            self.task = None

    def training(self, share: float, line: str) -> None:
        if self.task is None or self.stage != "training":
            self.clear()
            self.task, self.stage = self.bar.add_task("training", total=1.0), "training"
        self.bar.update(self.task, completed=share, description=line)

    def conclude(self, finished: Finished) -> None:
        """Reports the result, where the model is, and what to do next."""
        minutes = finished.seconds / 60
        if finished.reason.startswith("SIG"):
            self.say(f"stopped at update {finished.step} and saved; run the same command to resume")
            return
        scores = ", ".join(f"{name} {value:.4g}" for name, value in finished.best.items() if name != "step")
        best = f"; best at update {finished.best['step']}: {scores}" if finished.best else ""
        self.say(f"finished after {finished.step} updates and {minutes:.1f} minutes ({finished.reason}){best}")
        if finished.verdict:
            self.say(finished.verdict)
        self.say(f"model: {finished.model}")
        self.say(f"curves: headwise plot {finished.run}")


class _LiveHook(Hook):
    def __init__(self, live: Live) -> None:
        self.live = live
        self.speed = self.loss = self.padding = 0.0
        self.unit = "tokens"
        self.spoke = time.monotonic()

    def begin(self, trainer: Trainer) -> None:
        self.live.clear()
        parameters = sum(p.numel() for p in trainer.model.parameters())
        budget = f" of {trainer.total_steps:,}" if trainer.total_steps else ""
        self.live.say(f"training {parameters:,} parameters, from update {trainer.step:,}{budget}")

    def after_update(self, trainer: Trainer, update: Update, batch: Batch) -> None:
        padding = 1 - update.tokens / max(update.positions, 1)
        self.unit = batch.unit
        self.speed = _blend(self.speed, update.tokens / max(trainer.took, 1e-9))
        if not update.skipped:
            self.loss = _blend(self.loss, update.log_loss)
        self.padding = _blend(self.padding, padding)
        if self.live.terminal:
            self.live.training(trainer.progress(), self._line(trainer, update))
        elif time.monotonic() - self.spoke >= _SILENT:
            self.spoke = time.monotonic()
            self.live.say(f"{self._line(trainer, update)}  {trainer.progress():.0%} done, {_left(trainer)} left")

    def _line(self, trainer: Trainer, update: Update) -> str:
        perplexity = math.exp(min(self.loss, 50.0))
        if not self.live.wide:
            return f"update {trainer.step:,}  loss {self.loss:.3f}  {self.speed:,.0f} {self.unit}/s"
        return (
            f"update {trainer.step:,}  loss {self.loss:.3f}  ppl {perplexity:,.1f}  lr {update.rate:.2e}  "
            f"{self.speed:,.0f} {self.unit}/s  pad {self.padding:.0%}"
        )

    def on_record(self, trainer: Trainer, record: Record) -> None:
        match record["event"]:
            case "train" if not self.live.terminal:
                self.spoke = time.monotonic()
                self.live.say(
                    f"update {record['step']} loss {record['log_loss']:.4f} ppl {record['perplexity']:.2f} "
                    f"left {_left(trainer)} lr {record['rate']:.2e} {self.unit}/s {self.speed:.0f} "
                    f"padding {record['padding']:.2f}"
                )
            case "validation" | "average" if "log_loss" in record:
                self._validation(record)
            case "warning" | "not saved" | "slow":
                self.live.say(f"warning: {record['message']}", style="yellow")
            case "skipped":
                lines = ", ".join(map(str, record["lines"][:5]))
                self.live.say(
                    f"warning: update {record['step']} skipped: NaN or infinite loss ({record['loss']}) or gradient; "
                    f"{record['file']}, lines {lines}…", style="yellow",
                )  # fmt: skip

    def _validation(self, record: Record) -> None:
        shown = {name: value for name, value in record.items() if isinstance(value, float) and name != "empty"}
        scores = "  ".join(f"{name.replace('_', '-')} {value:.4g}" for name, value in shown.items())
        mark = "  (best so far)" if record["best"] else ""
        self.live.say(f"{record['event']} at update {record['step']}: {scores}{mark}", style="bold")
        if not self.live.terminal or not record.get("samples"):
            return
        table = Table(show_header=False, box=None, padding=(0, 1))
        for source, reference, output in record["samples"]:
            table.add_row("source", escape(source))
            table.add_row("reference", escape(reference))
            table.add_row("[bold]output", f"[bold]{escape(output)}")
            table.add_row("", "")
        self.live.console.print(table)


def _left(trainer: Trainer) -> str:
    """The time until the end of the run: 0:07:30."""
    seconds = trainer.seconds_left()
    return "?" if seconds is None else str(timedelta(seconds=round(seconds)))


def _blend(old: float, new: float) -> float:
    return new if old == 0.0 else _SMOOTH * old + (1 - _SMOOTH) * new
