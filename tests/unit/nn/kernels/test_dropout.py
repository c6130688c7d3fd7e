from __future__ import annotations

import pytest
import torch
from torch import Tensor

from headwise.nn.kernels.dropout import dropout, dropped_relu, dropped_sum, seeded_dropout


def test_dropout_draws_are_uniform_in_every_position_of_a_word() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(4_000_000), 0.5) != 0).view(-1, 4).double().mean(0)
    assert (kept - 0.5).abs().max() < 5 * 0.5 / 1000  # a sign bit that is never set would give 1.0 or 0.0


def test_a_seed_decides_the_masks_of_a_block_whatever_was_drawn_before() -> None:
    def draw(seed: int) -> Tensor:
        dropout(torch.ones(10), 0.5)
        with seeded_dropout(seed):
            return dropout(torch.ones(1000), 0.5)

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


@pytest.mark.parametrize("kernel", ["dropout", "sum", "relu"])
def test_a_rate_of_zero_is_the_plain_function(kernel: str) -> None:
    x, y = torch.randn(2, 3, 4)
    found = {"dropout": dropout(x, 0.0), "sum": dropped_sum(x, y, 0.0), "relu": dropped_relu(x, 0.0)}[kernel]
    assert torch.equal(found, {"dropout": x, "sum": x + y, "relu": x.relu()}[kernel])


@pytest.mark.parametrize("kernel", ["dropout", "sum", "relu"])
def test_a_rate_next_to_one_drops_nearly_all_and_stays_finite(kernel: str) -> None:
    x = torch.rand(100, 100, requires_grad=True)
    rate = 1 - 1e-12
    found = {"dropout": dropout(x, rate), "sum": dropped_sum(x, x, rate) - x, "relu": dropped_relu(x, rate)}[kernel]
    found.sum().backward()
    assert (found != 0).float().mean() < 0.01
    assert found.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
