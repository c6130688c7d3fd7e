"""A process that is alone has a World too; and the blank batch that a rank without sentences reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fixtures_models import small_transformer

from headwise.config.ranks import Ranks
from headwise.data.batch import Batch, LanguageBatch
from headwise.data.batches import share_of
from headwise.errors import DataError
from headwise.losses import batch_loss
from headwise.text.ragged import Ragged
from headwise.training.device import cores_of_rank
from headwise.training.distributed import ALONE, World, joined


def test_alone_there_is_nothing_to_agree_on() -> None:
    lines = np.array([4, 2], dtype=np.int64)
    assert ALONE.leads
    assert (ALONE.sum([1.5, 2]), ALONE.highest(3), ALONE.of_leader(7)) == ([1.5, 2], 3, 7)
    assert ALONE.joined_up(lines) is lines
    assert ALONE.first(lambda: {"done": 1}) == {"done": 1}
    ALONE.meet()


def test_alone_an_error_comes_out_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)

    def fail() -> World:
        with joined():
            raise DataError("no line is left")

    with pytest.raises(DataError, match=r"^no line is left$"):
        fail()


@pytest.mark.parametrize("count", [0, 1, 2, 5, 17])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_shares_of_ranks_are_those_of_threads(count: int, world: int) -> None:
    rows = np.arange(count)
    shares = [share_of(rows, rank, world).tolist() for rank in range(world)]
    sentences = Ragged.of([[5] * (row + 1) for row in range(count)])
    threads = [part.lines.tolist() for part in Batch.of(sentences, sentences, rows).split(world)]
    assert [share for share in shares if share] == threads
    assert [row for share in shares for row in share] == rows.tolist()


def test_a_blank_batch_is_one_that_a_model_can_read_and_learns_nothing_from() -> None:
    sentences = Ragged.of([[5, 6], [7]])
    model = small_transformer(20)
    sums = batch_loss(model, Batch.of(sentences, sentences).blank())
    (sums.total * 0.0).backward()
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())
    assert torch.isfinite(sums.total)
    language = LanguageBatch.of(np.array([[5, 6, 7]])).blank()
    assert (language.ids.shape, language.tokens) == ((1, 1), 1)


def test_the_processes_of_a_machine_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)))
    assert [cores_of_rank(Ranks(size=16, local_size=size)) for size in (1, 2, 8, 16)] == [8, 4, 1, 1]
    assert cores_of_rank(Ranks(size=16, local_size=8), wanted=3) == 3
