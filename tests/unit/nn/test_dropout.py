from __future__ import annotations

import pytest
import torch

from headwise.errors import ShapeError
from headwise.nn.dropout import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(rate: float) -> None:
    torch.manual_seed(0)
    layer = Dropout(rate)
    out = layer(torch.ones(1000, 1001))
    count = out.numel()
    deviation = (rate * (1 - rate) / count) ** 0.5
    assert abs((out == 0).double().mean().item() - rate) < 5 * deviation + 1e-5
    torch.testing.assert_close(out[out != 0].unique(), torch.tensor([1 / (1 - rate)]), atol=1e-4, rtol=1e-4)
    assert torch.equal(layer.eval()(out), out)


@pytest.mark.parametrize("name", ["added", "after_relu"])
def test_dropout_with_its_neighbour_equals_the_two_one_after_the_other(name: str) -> None:
    torch.manual_seed(0)
    layer = Dropout(0.4)
    inputs = [torch.randn(3, 5, 8) for _ in range(2)]
    first, second = ([x.clone().requires_grad_() for x in inputs] for _ in range(2))
    torch.manual_seed(3)
    fused = layer.added(*first) if name == "added" else layer.after_relu(first[0])
    torch.manual_seed(3)  # the same draw
    plain = second[0] + layer(second[1]) if name == "added" else layer(second[0].relu())
    torch.testing.assert_close(fused, plain, atol=1e-6, rtol=1e-6)
    direction = torch.randn_like(fused)
    (fused * direction).sum().backward()
    (plain * direction).sum().backward()
    assert any(x.grad is not None for x in first)
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-6, rtol=1e-6)
    layer.eval()
    evaluated = layer.added(*inputs) if name == "added" else layer.after_relu(inputs[0])
    torch.testing.assert_close(evaluated, inputs[0] + inputs[1] if name == "added" else inputs[0].relu())


@pytest.mark.parametrize("rate", [1.0, -0.1])
def test_a_rate_that_is_no_share_is_refused(rate: float) -> None:
    with pytest.raises(ShapeError, match=f"not {rate}"):
        Dropout(rate)
