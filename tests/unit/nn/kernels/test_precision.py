from __future__ import annotations

import torch
from torch import Tensor

from headwise.nn.kernels.dropout import dropped_sum
from headwise.nn.kernels.precision import in_float32


@in_float32
def product(one: Tensor, other: Tensor, rows: Tensor | None, count: int) -> tuple[Tensor, Tensor | None, int]:
    return one @ other, rows, count


def test_under_autocast_a_kernel_gets_and_computes_float32() -> None:
    one, rows = torch.randn(3, 3, requires_grad=True), torch.arange(3)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = one @ one
        found, same, count = product(narrow, narrow, rows, 2)
    assert (narrow.dtype, found.dtype, count) == (torch.bfloat16, torch.float32, 2)
    assert same is rows
    assert torch.equal(found, narrow.float() @ narrow.float())
    found.sum().backward()
    assert one.grad is not None
    assert one.grad.dtype == torch.float32


def test_without_autocast_nothing_is_converted() -> None:
    one = torch.randn(3, 3, dtype=torch.float64)
    assert product(one, one, None, 2)[0].dtype == torch.float64


def test_the_sum_over_all_layers_is_not_rounded() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert dropped_sum(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bfloat16), 0.5).dtype == torch.float32
