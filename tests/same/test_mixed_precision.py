"""Every family trains in bfloat16: its gradients are nearly those of float32, with the same dropout."""

from __future__ import annotations

import pytest
import torch
from fixtures_networks import NETWORKS
from torch import Tensor

from headwise.nn.kernels.dropout import seeded_dropout


@pytest.mark.parametrize("kind", NETWORKS)
def test_gradients_in_bfloat16_are_nearly_those_of_float32(kind: str) -> None:
    torch.manual_seed(1)
    make, draw = NETWORKS[kind]
    model, inputs = make(), draw()

    def gradients(enabled: bool) -> Tensor:
        with seeded_dropout(3), torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            states = model.states(*inputs).flatten(0, -2)
            targets = torch.arange(len(states)) % 5
            loss, _ = model.output.loss(states, targets, 0.0)
        assert loss.dtype == torch.float32
        found = torch.autograd.grad(loss, [one for one in model.parameters() if one.requires_grad], allow_unused=True)
        return torch.cat([one.flatten() for one in found if one is not None])

    narrow, wide = gradients(True), gradients(False)
    assert not torch.equal(narrow, wide)
    assert torch.cosine_similarity(narrow, wide, dim=0) > 0.99
