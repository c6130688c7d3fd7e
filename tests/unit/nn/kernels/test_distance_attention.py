from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from headwise.nn.kernels import distance_attention as kernel
from headwise.nn.kernels.distance_attention import distance_attention, shifted, shifted_back
from headwise.nn.kernels.dropout import seeded_dropout
from headwise.nn.masks import causal_mask

ROWS, HEADS, QUERIES, KEYS, SIZE = 5, 2, 3, 7, 4


def tensors() -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    shapes = [(ROWS, HEADS, QUERIES, SIZE)] * 2 + [(ROWS, HEADS, KEYS, SIZE)] * 2 + [(HEADS, KEYS, SIZE)]
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


def seen() -> Tensor:
    """Some keys are hidden by row, and from one query all of them."""
    allowed = causal_mask(QUERIES, past=KEYS - QUERIES) & (torch.rand(ROWS, HEADS, QUERIES, KEYS) < 0.7)
    allowed[1, 0, 1] = False
    return allowed


def test_rows_are_moved_to_the_distance_of_each_pair() -> None:
    columns = torch.arange(-1, KEYS).expand(2, QUERIES, 1 + KEYS).contiguous()
    distances = KEYS - 1 - shifted(columns)
    for query in range(QUERIES):
        for key in range(KEYS - QUERIES + query + 1):
            assert (distances[:, query, key] == KEYS - QUERIES + query - key).all()


def test_moving_back_is_the_transpose_of_moving() -> None:
    products = torch.randn(2, QUERIES, 1 + KEYS, dtype=torch.float64)
    scores = torch.randn(2, QUERIES, KEYS, dtype=torch.float64) * causal_mask(QUERIES, past=KEYS - QUERIES)
    assert_close((shifted(products) * scores).sum(), (products[..., 1:] * shifted_back(scores)).sum())


@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("rows_of_all", [True, False])
def test_gradients_are_those_of_the_output(rate: float, rows_of_all: bool) -> None:
    allowed = seen() if rows_of_all else causal_mask(QUERIES, past=KEYS - QUERIES)[None, None]

    def run(*inputs: Tensor) -> Tensor:
        with seeded_dropout(3):
            return distance_attention(*inputs, allowed, rate)

    assert torch.autograd.gradcheck(run, tensors())


@pytest.mark.parametrize("block", [1, 2 * HEADS * QUERIES * KEYS, 1000])
def test_blocks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    inputs, allowed = tensors(), seen()
    whole = distance_attention(*inputs, allowed, 0.0)
    expected = torch.autograd.grad(whole.square().sum(), inputs)
    monkeypatch.setattr(kernel, "_BLOCK", block)
    found = distance_attention(*inputs, allowed, 0.0)
    assert_close(found, whole)
    for one, other in zip(torch.autograd.grad(found.square().sum(), inputs), expected, strict=True):
        assert_close(one, other)


def test_a_query_that_sees_nothing_gets_zeros() -> None:
    out = distance_attention(*tensors(), seen(), 0.0)
    assert not out[1, 0, 1].any()
    assert out[0].any()


def test_gradients_of_gradients_are_refused_not_wrong() -> None:
    inputs = tensors()
    (grad,) = torch.autograd.grad(
        distance_attention(*inputs, seen(), 0.0).square().sum(), inputs[:1], create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_dropout_keeps_the_mean() -> None:
    inputs, allowed = tensors(), causal_mask(QUERIES, past=KEYS - QUERIES)[None, None]
    draws = torch.stack([distance_attention(*inputs, allowed, 0.3) for _ in range(3000)]).mean(dim=0)
    assert_close(draws, distance_attention(*inputs, allowed, 0.0), atol=0.12, rtol=0.0)
