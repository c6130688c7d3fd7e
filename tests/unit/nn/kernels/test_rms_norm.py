from __future__ import annotations

import torch
import torch.nn.functional as F

from headwise.nn.kernels.rms_norm import rms_norm


def test_values_and_gradients_are_those_of_torch() -> None:
    torch.manual_seed(0)
    for shape in ((3, 5, 8), (4, 8), (8,)):
        x, weight = torch.randn(shape, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
        ours = [t.clone().requires_grad_() for t in (x, weight)]
        theirs = [t.clone().requires_grad_() for t in (x, weight)]
        found, expected = rms_norm(*ours, 1e-6), F.rms_norm(theirs[0], (8,), theirs[1], 1e-6)
        torch.testing.assert_close(found, expected)
        direction = torch.randn_like(expected)
        found.backward(direction)
        expected.backward(direction)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one.grad, other.grad)


def test_gradients_flow_through_slices_and_expanded_directions() -> None:
    x = torch.randn(2, 6, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: rms_norm(x[:, ::2].transpose(0, 1), w, 1e-5).sum(0), (x, weight))
