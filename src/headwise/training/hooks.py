"""Hooks of the training loop: logging, validation, checkpoints, and the stop at NaN or infinite losses."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from headwise.bundle.checkpoint import checkpoint_path, list_checkpoints, save_checkpoint
from headwise.bundle.run_files import LOG, TIMES
from headwise.config.cores import training_cores
from headwise.data.batch import Batch
from headwise.errors import WorkFailed
from headwise.losses import BatchLoss, Loss, batch_loss
from headwise.training.carry import Carry
from headwise.training.device import all_cores
from headwise.training.loop import Hook, Record, Trainer
from headwise.training.resume import loop_state
from headwise.training.step import Update

# Only records of what was computed, not of when or how fast: a resumed run has the same log as an uninterrupted one.
_LOGGED = ("train", "validation", "warning", "skipped", "average", "end")


class Log(Hook):
    """Writes `log.jsonl`, one JSON object per line. Times and speeds, which differ per run, go to `times.jsonl`."""

    def __init__(self, run: Path, every: int) -> None:
        self.path, self.times, self.every = run / LOG, run / TIMES, every
        self.size = 0
        self.waiting = ""  # lines that could not be written yet because the disk was full
        self.last: Update | None = None
        self.sums = {"loss": 0.0, "log_loss": 0.0, "tokens": 0, "positions": 0}
        self.took = 0.0  # seconds of the updates since the last record

    def begin(self, trainer: Trainer) -> None:
        self.path.touch()
        self.size = min(self.size, self.path.stat().st_size)
        os.truncate(self.path, self.size)  # a killed run may have logged updates after its last checkpoint
        self._write()

    def after_update(self, trainer: Trainer, update: Update, batch: Batch) -> None:
        if not update.skipped:
            for name in ("loss", "log_loss"):
                self.sums[name] += getattr(update, name) * update.tokens
            self.sums["tokens"] += update.tokens
            self.sums["positions"] += update.positions
        self.last = update
        self.took += trainer.took
        # Writes no record at an interruption: the log must not depend on where a run was interrupted.
        if trainer.step % self.every == 0 or trainer.ended:
            self._record(trainer, update)

    def end(self, trainer: Trainer) -> None:
        if trainer.ended and self.last is not None:
            self._record(trainer, self.last)

    def _record(self, trainer: Trainer, update: Update) -> None:
        tokens = self.sums["tokens"]
        if not tokens:
            return
        log_loss = self.sums["log_loss"] / tokens
        trainer.emit(
            {
                "event": "train", "step": trainer.step, "epoch": trainer.cursor.epoch, "tokens": trainer.tokens,
                "loss": self.sums["loss"] / tokens, "log_loss": log_loss, "perplexity": perplexity(log_loss),
                "rate": update.rate, "norm": update.norm, "padding": 1 - tokens / self.sums["positions"],
            }
        )  # fmt: skip
        self.sums = dict.fromkeys(self.sums, 0)
        speed = tokens / max(self.took, 1e-9)
        self.took = 0.0
        times = {"step": trainer.step, "seconds": round(trainer.elapsed(), 3), "tokens_per_second": round(speed, 1)}
        with suppress(OSError), open(self.times, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(times) + "\n")

    def on_record(self, trainer: Trainer, record: Record) -> None:
        if record["event"] in _LOGGED:
            self.waiting += json.dumps(_plain(record), ensure_ascii=False, allow_nan=False) + "\n"
            self._write()

    def _write(self) -> None:
        """Appends the waiting lines; on failure keeps them for the next time and removes a partly written line."""
        try:
            with open(self.path, "a", encoding="utf-8") as stream:
                stream.write(self.waiting)
        except OSError:
            with suppress(OSError):
                os.truncate(self.path, self.size)
            return
        self.size, self.waiting = self.size + len(self.waiting.encode()), ""

    def state(self) -> dict[str, Any]:
        return {"size": self.size, "waiting": self.waiting, "sums": self.sums}

    def restore(self, state: dict[str, Any]) -> None:
        self.size, self.waiting, self.sums = state["size"], state.get("waiting", ""), dict(state["sums"])


class StopAtBadNumbers(Hook):
    """Reports the corpus lines of updates skipped for a NaN or infinite loss or gradient; stops the run at too many."""

    def __init__(self, limit: int, place: Callable[[int], tuple[str, int]]) -> None:
        self.limit, self.place, self.count = limit, place, 0

    def after_update(self, trainer: Trainer, update: Update, batch: Batch) -> None:
        if not update.skipped:
            return
        self.count += 1
        file, line = self.place(update.lines[0])
        lines = [self.place(number)[1] for number in update.lines[:20]]
        trainer.emit(
            {
                "event": "skipped",
                "step": trainer.step,
                "loss": repr(update.loss),
                "norm": repr(update.norm),
                "file": file,
                "lines": lines,
            }
        )
        if self.count > self.limit:
            raise WorkFailed(
                f"{self.count} updates had a NaN or infinite loss or gradient, the last with {file}:{line}; "
                "lower the learning rate, or look at these lines (headwise check)"
            )

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


# Measures the task's own scores by name (bleu, chrf, …) and returns samples of (source, reference, output) to read.
Scorer = Callable[[], tuple[dict[str, float], list[tuple[str, str, str]]]]


@runtime_checkable
class BatchScorer(Protocol):
    """A scorer that reads its scores off the batches of which the validation loss is computed."""

    def add(self, batch: Batch, sums: BatchLoss) -> None: ...

    def __call__(self) -> tuple[dict[str, float], list[tuple[str, str, str]]]: ...


class Validate(Hook):
    """Measures the loss on held-out data and, with a scorer, the task's own scores; keeps track of the best."""

    def __init__(
        self,
        batches: Callable[[], Iterable[Batch]],
        scorer: Scorer | None,
        best_by: str,
        loss: Loss = batch_loss,
        falling: Sequence[str] = (),
    ) -> None:
        """`falling`: scores of which less is better."""
        self.batches, self.scorer, self.best_by, self.loss, self.falling = batches, scorer, best_by, loss, falling
        self.best: dict[str, Any] | None = None
        self.best_before: dict[str, Any] | None = None
        self.without_better = 0  # validations since the best one, for early stopping
        self.scores: tuple[str, ...] = ()  # names of what the scorer measures

    def after_update(self, trainer: Trainer, update: Update, batch: Batch) -> None:
        if trainer.step % trainer.settings.validate_every == 0 or trainer.ended:
            self.validate(trainer)

    def validate(self, trainer: Trainer, event: str = "validation") -> Record:
        record = {"event": event, "step": trainer.step, **self.measure(trainer)}
        better = self.best is None or _better(record, self.best, self.best_by, self.falling)
        record["best"] = better
        if better:
            self.best_before = self.best
            self.best = {key: value for key, value in record.items() if key in ("step", "log_loss", *self.scores)}
        self.without_better = 0 if better else self.without_better + 1
        patience = trainer.settings.patience
        if event == "validation" and patience and self.without_better >= patience and trainer.stop is None:
            trainer.stop = "patience"
        trainer.emit(record)
        return record

    def on_record(self, trainer: Trainer, record: Record) -> None:
        if record["event"] == "not saved" and record["best_lost"]:
            self.best = self.best_before  # the weights of the best one could not be saved

    def measure(self, trainer: Trainer) -> Record:
        with torch.no_grad(), trainer.full.evaluated() as model, all_cores(training_cores(trainer.settings.threads)):
            total, count, carry = 0.0, 0, Carry()
            for batch in self.batches():
                sums = self.loss(model, carry.into(batch).to(trainer.updater.device), 0.0)
                carry.keep([sums.carry])
                total, count = total + sums.log_loss.item(), count + sums.count
                if isinstance(self.scorer, BatchScorer):
                    self.scorer.add(batch, sums)
            log_loss = total / max(count, 1)
            if not math.isfinite(log_loss):
                raise WorkFailed(
                    f"the validation loss at update {trainer.step} is NaN or infinite: training has diverged; lower "
                    "training.learning_rate or set training.clip_norm, and start again from an earlier checkpoint"
                )
            measured: Record = {"log_loss": log_loss, "perplexity": perplexity(log_loss)}
            if self.scorer is not None:
                scores, samples = self.scorer()
                self.scores = tuple(scores)
                measured |= {**scores, "samples": samples}
            return measured

    def state(self) -> dict[str, Any]:
        return {"best": self.best, "without_better": self.without_better}

    def restore(self, state: dict[str, Any]) -> None:
        self.best, self.without_better = state["best"], state["without_better"]


# Writes a model directory with these weights.
SaveModel = Callable[[Path, dict[str, Tensor]], None]


class Save(Hook):
    """Saves a checkpoint every `save_every` updates, at each new best and at the end; keeps the last and the best."""

    def __init__(self, folder: Path, save_model: SaveModel, on_best: Callable[[Path], None]) -> None:
        self.folder, self.save_model, self.on_best = folder, save_model, on_best
        self.best_step: int | None = None
        self.best_before: int | None = None
        self.retry_at: int | None = None

    def after_update(self, trainer: Trainer, update: Update, batch: Batch) -> None:
        due = trainer.step % trainer.settings.save_every == 0 or trainer.stop is not None
        if due or self.best_step == trainer.step or trainer.step == self.retry_at:
            self.save(trainer)

    def on_record(self, trainer: Trainer, record: Record) -> None:
        if record["event"] == "validation" and record["best"]:
            self.best_before, self.best_step = self.best_step, trainer.step

    def save(self, trainer: Trainer) -> None:
        tensors = trainer.full.gather()
        weights = trainer.full.evaluated_weights(tensors)
        try:
            path = save_checkpoint(
                self.folder, trainer.step, lambda new: self.save_model(new, weights), tensors, loop_state(trainer)
            )
            best = self.best_checkpoint()
            if best is not None:
                self.on_best(best / "model")  # also if an earlier attempt to publish it failed
        except WorkFailed as error:
            if trainer.stop is not None:
                raise
            lost = self.best_step == trainer.step and self._missing(trainer.step)
            if lost:
                self.best_step = self.best_before
            self.retry_at = trainer.step + max(1, trainer.settings.save_every // 10)
            trainer.emit(
                {
                    "event": "not saved",
                    "step": trainer.step,
                    "best_lost": lost,
                    "message": f"{error}; training continues and tries to save again at update {self.retry_at}",
                }
            )
            return
        self.retry_at = None
        trainer.emit({"event": "saved", "step": trainer.step, "path": str(path)})
        self._prune(trainer)

    def _prune(self, trainer: Trainer) -> None:
        """Deletes old checkpoints, after the new one is safely written."""
        found = list_checkpoints(self.folder)
        wanted = max(trainer.settings.keep, trainer.settings.average)
        regular = [step for step, _ in found if step % trainer.settings.save_every == 0]
        kept = {*regular[-wanted:], found[-1][0], self.best_step}
        for step, path in found:
            if step not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def state(self) -> dict[str, Any]:
        return {"best_step": self.best_step}

    def restore(self, state: dict[str, Any]) -> None:
        self.best_step = state["best_step"]

    def best_checkpoint(self) -> Path | None:
        """Returns the path of the best checkpoint; None if there is none or it could not be saved."""
        lost = self.best_step is None or self._missing(self.best_step)
        return None if lost else checkpoint_path(self.folder, self.best_step or 0)

    def _missing(self, step: int) -> bool:
        return not checkpoint_path(self.folder, step).is_dir()


def perplexity(log_loss: float) -> float:
    return math.exp(min(log_loss, 700.0))  # JSON has no infinity


def _better(new: Record, old: Record, by: str, falling: Sequence[str] = ()) -> bool:
    if not (math.isfinite(new["log_loss"]) and math.isfinite(old["log_loss"])):
        return math.isfinite(new["log_loss"])
    if by == "loss" or by not in new or by not in old:
        return bool(new["log_loss"] < old["log_loss"])
    return bool(new[by] < old[by] if by in falling else new[by] > old[by])


def _plain(record: Record) -> Record:
    """Replaces NaN and infinity, which JSON does not have, by null."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
