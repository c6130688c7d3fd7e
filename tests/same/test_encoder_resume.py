"""A run that fills, classifies or embeds ends with the same bits whether or not it was stopped on its way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_tables import write_table_recipe
from small_texts import write_embed_recipe, write_fill_recipe, write_span_recipe

from headwise.config.recipe import load_recipe
from headwise.training.loop import Hook, Trainer
from headwise.training.step import Update
from headwise.workflows.train import train

TRAINING = {"steps": 24, "validate_every": 6, "save_every": 5, "ema": 0.9, "log_every": 3}
RECIPES: dict[str, Callable[..., Path]] = {
    "fill": write_fill_recipe, "fill spans": write_span_recipe, "classify": write_table_recipe,
    "embed": write_embed_recipe,
}  # fmt: skip


class StopAt(Hook):
    def __init__(self, step: int) -> None:
        self.step = step

    def after_update(self, trainer: Trainer, update: Update, batch: object) -> None:
        if trainer.step == self.step:
            trainer.stop = "SIGTERM"


@pytest.mark.parametrize("task", RECIPES)
def test_a_stopped_run_ends_bit_identical(task: str, tmp_path: Path) -> None:
    recipe = RECIPES[task](tmp_path, training=TRAINING, model={"dropout": 0.2})
    train(*load_recipe(recipe), tmp_path / "alone")
    for step in (4, 13, 22):
        train(*load_recipe(recipe), tmp_path / "stopped", hooks=(StopAt(step),))
    train(*load_recipe(recipe), tmp_path / "stopped")
    for name in ("model/model.safetensors", "log.jsonl"):
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes(), name
