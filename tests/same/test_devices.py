"""Networks make their tensors where their inputs are, so that they run on other devices than the CPU too.

The device here is torch's "meta", which computes shapes only: operations on it refuse tensors of another device.
"""

from __future__ import annotations

import pytest
import torch
from fixtures_networks import NETWORKS

# They look at numbers, which are not there: tokens of rare words, global tokens, lengths.
LOOKING = {"lm of rare words", "longformer", "bigbird"}


@pytest.mark.parametrize("kind", sorted(NETWORKS.keys() - LOOKING))
def test_a_network_trains_where_its_inputs_are(kind: str) -> None:
    make, draw = NETWORKS[kind]
    model, inputs = make().to("meta"), [one.to("meta") for one in draw()]
    states = model.states(*inputs).flatten(0, -2)
    loss, _ = model.output.loss(states, torch.zeros(len(states), dtype=torch.int64, device="meta"), 0.1)
    weights = [one for one in model.parameters() if one.requires_grad]
    assert any(grad is not None for grad in torch.autograd.grad(loss, weights, allow_unused=True))
