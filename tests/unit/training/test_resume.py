from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fixtures_models import small_transformer, word_tokenizers

from headwise.bundle.checkpoint import Checkpoint, checkpoint_path, open_checkpoint, save_checkpoint
from headwise.bundle.weights import save_model
from headwise.config.schema import Training
from headwise.data.cursor import Cursor
from headwise.data.pairs import pair_batch
from headwise.errors import ModelError
from headwise.text.ragged import Ragged
from headwise.training.distributed import ALONE
from headwise.training.gather import FullModel
from headwise.training.loop import Hook, Trainer
from headwise.training.optimizers import build_optimizer
from headwise.training.resume import loop_state, restore
from headwise.training.step import Updater

SETTINGS = Training(steps=3, optimizer="adam")


class Counting(Hook):
    """A hook that has something to remember."""

    def __init__(self) -> None:
        self.count = 0

    def after_update(self, *_: Any) -> None:
        self.count += 1

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


def trainer(**changes: object) -> Trainer:
    torch.manual_seed(1)
    model = small_transformer(word_tokenizers().source.size, **changes)
    optimizer = build_optimizer(SETTINGS, model.parameters())
    full = FullModel(model, optimizer, ALONE)
    return Trainer(Updater(model, optimizer), lambda step: 0.01, SETTINGS, full, [Counting()], 3)


def trained_and_saved(folder: Path) -> tuple[Trainer, Checkpoint]:
    first = trainer()
    sentences = Ragged.of([[5, 6, 7], [8]])
    first.run((pair_batch(sentences, sentences, np.array([1, 2])), Cursor(0, number + 1)) for number in range(3))
    tensors = first.full.gather()

    def fill(new: Path) -> None:
        save_model(new, first.model, word_tokenizers(), family="transformer")

    path = save_checkpoint(folder, first.step, fill, tensors, loop_state(first))
    return first, open_checkpoint(path)


def test_a_trainer_is_where_the_checkpoint_was_written(tmp_path: Path) -> None:
    first, checkpoint = trained_and_saved(tmp_path)
    second = trainer()
    restore(second, checkpoint)
    assert (second.step, second.tokens, second.cursor) == (3, first.tokens, Cursor(0, 3))
    assert second.hooks[0].state() == {"count": 3}
    for name, tensor in first.full.gather().items():
        assert torch.equal(tensor, second.full.gather()[name]), name


def test_a_checkpoint_of_another_model_is_one_clear_line(tmp_path: Path) -> None:
    _, checkpoint = trained_and_saved(tmp_path)
    for other in (trainer(decoder_layers=1), trainer(model_dim=32)):
        with pytest.raises(ModelError, match="does not fit this recipe"):
            restore(other, checkpoint)
    assert checkpoint_path(tmp_path, 3).is_dir()
