"""A run on augmented and mixed pictures that was stopped and resumed ends with the bits of the run left alone."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from small_pictures import write_picture_recipe

from headwise.config.recipe import load_recipe
from headwise.training.loop import Hook, Trainer
from headwise.workflows.train import train

AUGMENTED = {"flip": True, "shift": 1, "operations": 2, "erase": 0.3, "mixup": 0.3, "cutmix": 1.0}


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


def test_augmentation_is_the_same_after_a_resume(tmp_path: Path) -> None:
    training = {"steps": 24, "save_every": 5, "validate_every": 12}
    loaded, base = load_recipe(write_picture_recipe(tmp_path, 60, images=AUGMENTED, training=training))
    train(loaded, base, tmp_path / "alone")
    for step in (7, 18):  # each loses the updates since the last checkpoint, in the middle of an epoch
        with pytest.raises(CrashedError):
            train(loaded, base, tmp_path / "stopped", hooks=(CrashAt(step),))
    train(loaded, base, tmp_path / "stopped")
    assert weights(tmp_path / "stopped") == weights(tmp_path / "alone")
