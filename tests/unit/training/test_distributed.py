"""A process that is alone has a World too; and the blank batch that a rank without sentences reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fixtures_models import small_transformer

from headwise.data.blocks import block_batch
from headwise.data.pairs import pair_batch
from headwise.errors import DataError
from headwise.losses import batch_loss
from headwise.models.lm import LanguageModel
from headwise.text.ragged import Ragged
from headwise.training.distributed import ALONE, World, joined


def test_alone_there_is_nothing_to_agree_on() -> None:
    lines = np.array([4, 2], dtype=np.int64)
    assert ALONE.leads
    assert (ALONE.sum([1.5, 2]), ALONE.maximum(3), ALONE.broadcast(7)) == ([1.5, 2], 3, 7)
    assert ALONE.gather(lines) is lines
    assert ALONE.on_rank_0(lambda: {"done": 1}) == {"done": 1}
    ALONE.wait_for_all()


def test_alone_an_error_comes_out_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)

    def fail() -> World:
        with joined():
            raise DataError("no line is left")

    with pytest.raises(DataError, match=r"^no line is left$"):
        fail()


def test_a_blank_batch_is_one_that_a_model_can_read_and_learns_nothing_from() -> None:
    sentences = Ragged.of([[5, 6], [7]])
    model = small_transformer(20)
    sums = batch_loss(model, pair_batch(sentences, sentences).blank())
    (sums.total * 0.0).backward()
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())
    assert torch.isfinite(sums.total)
    language = LanguageModel(vocab=20, model_dim=8, num_heads=2, layers=1, ff_dim=8)
    sums = batch_loss(language, block_batch(np.array([[5, 6, 7]])).blank())
    (sums.total * 0.0).backward()
    assert torch.isfinite(sums.total)
