from __future__ import annotations

import torch
from fixtures_models import small_transformer

from headwise.training.ema import MovingAverage


def test_moving_average_follows_the_weights_and_gives_them_back() -> None:
    torch.manual_seed(0)
    network = small_transformer(20)
    average = MovingAverage(network, 0.5)
    start = network.output.weight.detach().clone()
    with torch.no_grad():
        network.output.weight.add_(1.0)
    average.update(step=10_000)
    moved = network.output.weight.detach().clone()
    with average.applied():
        torch.testing.assert_close(network.output.weight, start + 0.5)
    assert torch.equal(network.output.weight, moved)
