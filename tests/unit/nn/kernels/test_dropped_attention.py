from __future__ import annotations

import pytest
import torch
from torch import Tensor

from headwise.nn import Dropout, causal_mask, fast_attention, padding_mask, scaled_dot_product_attention
from headwise.nn.kernels.dropout import dropout
from headwise.nn.kernels.dropped_attention import dropped_attention


@pytest.mark.parametrize("mask", ["none", "padding", "empty rows", "causal"])
def test_attention_with_dropout_equals_its_parts_done_one_after_the_other(mask: str) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(3, 5, 2, 4).transpose(1, 2) for _ in range(3)]
    allowed = {
        "none": None,
        "padding": padding_mask(torch.tensor([5, 3, 1]), 5)[:, None, None],
        "empty rows": padding_mask(torch.tensor([5, 0, 2]), 5)[:, None, None],
        "causal": causal_mask(5),
    }[mask]
    first = [t.clone().requires_grad_() for t in tensors]
    second = [t.clone().requires_grad_() for t in tensors]
    torch.manual_seed(3)
    fast = dropped_attention(*first, allowed, 0.4)
    torch.manual_seed(3)  # the same draw
    plain = dropout(scaled_dot_product_attention(*second, allowed)[1], 0.4) @ second[2]
    torch.testing.assert_close(fast, plain, atol=1e-6, rtol=1e-5)
    direction = torch.randn_like(fast)
    (fast * direction).sum().backward()
    (plain * direction).sum().backward()
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-6, rtol=1e-5)


def test_gradcheck_of_attention_with_dropout_and_of_dropout_itself() -> None:
    x = torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True)

    def fixed(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)  # the same draw at every evaluation
        return fast_attention(x, x * 0.5, x.cos(), causal=True, rate=0.4)

    def dropped(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)
        return Dropout(0.4)(x)

    assert torch.autograd.gradcheck(fixed, (x,))
    assert torch.autograd.gradcheck(dropped, (x,))


@pytest.mark.parametrize("bias_shape", [(3, 2, 5, 5), (1, 2, 5, 5), (2, 5, 5), (1, 1, 5)])
@pytest.mark.parametrize("mask", ["none", "padding", "empty rows", "causal"])
def test_a_bias_and_its_gradient_equal_those_of_the_parts(mask: str, bias_shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    tensors = [*(torch.randn(3, 2, 5, 4) for _ in range(3)), torch.randn(bias_shape)]
    allowed = {
        "none": None,
        "padding": padding_mask(torch.tensor([5, 3, 1]), 5)[:, None, None],
        "empty rows": padding_mask(torch.tensor([5, 0, 2]), 5)[:, None, None],
        "causal": causal_mask(5),
    }[mask]

    def kernel(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        return dropped_attention(query, key, value, allowed, 0.4, bias, 0.6)

    def parts(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        _, weights = scaled_dot_product_attention(query, key, value, allowed, bias=bias, scale=0.6)
        return dropout(weights, 0.4) @ value

    def outputs_and_gradients(attend: object) -> list[Tensor]:
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        torch.manual_seed(3)  # the same draw
        output = attend(*leaves)  # type: ignore[operator]
        direction = torch.sin(torch.arange(output.numel())).view_as(output)
        return [output, *torch.autograd.grad((output * direction).sum(), leaves)]

    for one, other in zip(outputs_and_gradients(kernel), outputs_and_gradients(parts), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_values_may_be_wider_than_keys() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5), torch.randn(2, 3, 6, 7)
    exact, _ = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(dropped_attention(query, key, value, None, 0.0), exact, atol=1e-5, rtol=1e-5)
