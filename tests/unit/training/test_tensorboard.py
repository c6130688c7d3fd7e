"""The events are read back by TensorBoard's own reader."""

from __future__ import annotations

import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwise.training.loop import Trainer
from headwise.training.tensorboard import TensorBoard

event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def trainer(step: int) -> Trainer:
    return cast("Trainer", SimpleNamespace(step=step))


def write(run: Path, first: int, last: int, loss: float) -> None:
    """What a process of a run logs: updates first + 1 to last."""
    hook = TensorBoard(run)
    hook.begin(trainer(first))
    for step in range(first + 1, last + 1):
        hook.on_record(trainer(step), {"event": "train", "step": step, "log_loss": loss, "rate": 0.5, "epoch": 0})
    hook.on_record(trainer(last), {"event": "validation", "step": last, "log_loss": 2.5, "bleu": 31.0, "samples": []})
    hook.on_record(trainer(last), {"event": "saved", "step": last, "path": "x"})
    hook.end(trainer(last))


def scalars(run: Path) -> dict[str, list[tuple[int, float]]]:
    events = event_accumulator.EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_the_scalars_of_training_and_validation_are_there(tmp_path: Path) -> None:
    write(tmp_path, 0, 3, loss=1.5)
    assert scalars(tmp_path) == {
        "train/log_loss": [(1, 1.5), (2, 1.5), (3, 1.5)],
        "train/rate": [(1, 0.5), (2, 0.5), (3, 0.5)],
        "validation/log_loss": [(3, 2.5)],
        "validation/bleu": [(3, 31.0)],
    }


def test_of_a_resumed_run_the_later_events_count_even_within_one_second(tmp_path: Path) -> None:
    write(tmp_path, 0, 4, loss=1.0)
    write(tmp_path, 2, 5, loss=2.0)
    assert len(list((tmp_path / "tensorboard").iterdir())) == 2
    found: dict[int, float] = {}
    for step, value in scalars(tmp_path)["train/log_loss"]:
        found[step] = value
    assert found == {1: 1.0, 2: 1.0, 3: 2.0, 4: 2.0, 5: 2.0}


def test_a_full_disk_neither_stops_nor_blocks_the_run(tmp_path: Path) -> None:
    hook = TensorBoard(tmp_path)
    hook.begin(trainer(0))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        for step in range(1, 2000):
            hook.on_record(trainer(step), {"event": "train", "step": step, "log_loss": 1.0})
        hook.end(trainer(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "tensorboard").is_dir()


def test_a_folder_that_cannot_be_made_does_not_stop_the_run(tmp_path: Path) -> None:
    (tmp_path / "tensorboard").write_text("a file")
    hook: Any = TensorBoard(tmp_path)
    hook.begin(trainer(0))
    hook.on_record(trainer(1), {"event": "train", "step": 1, "log_loss": 1.0})
    hook.end(trainer(1))
    assert (tmp_path / "tensorboard").read_text() == "a file"
