"""A run on varied recordings that was stopped and resumed ends with the bits of the run left alone."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from small_sounds import write_sound_recipe

from headwise.config.recipe import load_recipe
from headwise.training.loop import Hook, Trainer
from headwise.workflows.train import train


class CrashedError(Exception):
    pass


class CrashAt(Hook):
    def __init__(self, step: int) -> None:
        self.step = step

    def after_update(self, trainer: Trainer, update: object, batch: object) -> None:
        if trainer.step == self.step:
            raise CrashedError


def weights(output: Path) -> tuple[str, str]:
    last = max((output / "checkpoints").glob("step-*"))
    files = (last / "training.safetensors", output / "model/model.safetensors")
    first, second = (hashlib.sha256(file.read_bytes()).hexdigest() for file in files)
    return first, second


def test_variations_and_the_order_of_recordings_are_the_same_after_a_resume(tmp_path: Path) -> None:
    changes = ("data.sound.short_first=3", "training.save_every=5", "model.dropout=0.1", "training.ema=0.9")
    loaded, base = load_recipe(write_sound_recipe(tmp_path, steps=24), changes)
    train(loaded, base, tmp_path / "alone")
    for step in (7, 18):  # each loses the updates since the last checkpoint, in the middle of an epoch
        with pytest.raises(CrashedError):
            train(loaded, base, tmp_path / "stopped", hooks=(CrashAt(step),))
    train(loaded, base, tmp_path / "stopped")
    assert weights(tmp_path / "stopped") == weights(tmp_path / "alone")
