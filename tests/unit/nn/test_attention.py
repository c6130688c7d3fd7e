"""The fast path equals the equation: outputs and gradients, with masks, biases and scales."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from headwise.errors import ShapeError
from headwise.nn.attention import Attention, fast_attention, masked_softmax, scaled_dot_product_attention
from headwise.nn.masks import causal_mask, padding_mask


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["none", "padding", "random", "empty rows"])
def test_fast_path_equals_the_equation_forward_and_backward(mask: str, causal: bool) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(3, 2, 6, 4) for _ in range(3)]
    allowed = {
        "none": None,
        "padding": padding_mask(torch.tensor([6, 3, 1]), 6)[:, None, None],
        "random": torch.rand(3, 1, 6, 6) < 0.5,
        "empty rows": padding_mask(torch.tensor([6, 0, 2]), 6)[:, None, None],
    }[mask]
    seen = causal_mask(6) if causal else torch.ones(6, 6, dtype=torch.bool)
    whole = seen if allowed is None else seen & allowed
    first = [t.clone().requires_grad_() for t in tensors]
    second = [t.clone().requires_grad_() for t in tensors]
    reference, weights = scaled_dot_product_attention(*first, whole)
    fast = fast_attention(*second, allowed, causal=causal)
    torch.testing.assert_close(fast, reference, atol=1e-5, rtol=1e-5)
    direction = torch.randn_like(fast)
    (reference * direction).sum().backward()
    (fast * direction).sum().backward()
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-5, rtol=1e-5)
    assert torch.equal(weights[~whole.expand_as(weights)], torch.zeros(int((~whole.expand_as(weights)).sum())))


def test_a_row_that_may_attend_to_nothing_is_zero_and_has_finite_gradients() -> None:
    query = torch.randn(1, 2, 3, 4, requires_grad=True)
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    for output in (
        scaled_dot_product_attention(query, query, query, nothing)[0],
        fast_attention(query, query, query, nothing),
        fast_attention(query, query, query, nothing, rate=0.5),
    ):
        assert torch.equal(output, torch.zeros_like(output))
        query.grad = None
        output.sum().backward()
        assert query.grad is not None
        assert torch.isfinite(query.grad).all()


def test_causal_attention_with_more_keys_than_queries_aligns_at_the_end() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 2, 2, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    expected, _ = scaled_dot_product_attention(query, key, value, causal_mask(2, past=3))
    torch.testing.assert_close(fast_attention(query, key, value, causal=True), expected)


def test_dropout_on_attention_weights_keeps_the_mean() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 1, 4, 8) for _ in range(3))
    exact, _ = scaled_dot_product_attention(query, key, value)
    many = torch.stack([fast_attention(query, key, value, rate=0.3) for _ in range(4000)])
    assert not torch.equal(many[0], many[1])
    torch.testing.assert_close(many.mean(0), exact, atol=0.05, rtol=0.0)


MASKS = {
    "none": None,
    "padding": padding_mask(torch.tensor([6, 3, 1]), 6)[:, None, None],
    "empty rows": padding_mask(torch.tensor([6, 0, 2]), 6)[:, None, None],
    "per query": torch.arange(36).view(6, 6) % 3 > 0,
}


def outputs_and_gradients(attend: object, tensors: list[Tensor]) -> list[Tensor]:
    """Of query, key, value and bias, in a fixed direction."""
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    output = attend(*leaves)  # type: ignore[operator]
    direction = torch.sin(torch.arange(output.numel(), dtype=output.dtype)).view_as(output)
    return [output, *torch.autograd.grad((output * direction).sum(), leaves)]


@pytest.mark.parametrize("bias_shape", [(3, 2, 6, 6), (2, 6, 6), (3, 1, 1, 6)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_a_bias_on_the_scores_and_its_gradient_equal_the_equations(
    mask: str, causal: bool, bias_shape: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    tensors = [*(torch.randn(3, 2, 6, 4) for _ in range(3)), torch.randn(bias_shape)]
    allowed = MASKS[mask]
    whole = causal_mask(6) if causal else torch.ones(6, 6, dtype=torch.bool)
    whole = whole if allowed is None else whole & allowed

    def reference(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        return scaled_dot_product_attention(query, key, value, whole, bias=bias, scale=0.3)[0]

    def fast(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        return fast_attention(query, key, value, allowed, bias=bias, causal=causal, scale=0.3)

    expected, found = outputs_and_gradients(reference, tensors), outputs_and_gradients(fast, tensors)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_a_bias_is_added_to_the_scores_before_the_softmax() -> None:
    torch.manual_seed(0)
    query, key, value, bias = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4, 5), torch.randn(2, 4)
    output, weights = scaled_dot_product_attention(query, key, value, bias=bias, scale=2.0)
    by_hand = (2.0 * query @ key.T + bias).softmax(dim=-1)
    torch.testing.assert_close(weights, by_hand)
    torch.testing.assert_close(output, by_hand @ value)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_a_scale_replaces_the_root_of_the_head_size(causal: bool, rate: float) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 2, 5, 4) for _ in range(3))

    def attend(query: Tensor, scale: float | None) -> Tensor:
        torch.manual_seed(3)  # the same dropout
        return fast_attention(query, key, value, causal=causal, rate=rate, scale=scale)

    torch.testing.assert_close(attend(query, 0.25), attend(query / 2, 0.5))
    torch.testing.assert_close(attend(query, 0.5), attend(query, None))  # 1 / √4


def test_softmax_counts_what_is_allowed_only() -> None:
    scores, allowed = torch.tensor([[1.0, 5.0, 1.0]]), torch.tensor([[True, False, True]])
    assert masked_softmax(scores, allowed).tolist() == [[0.5, 0.0, 0.5]]


def test_an_attention_without_a_cache_says_that_it_cannot_decode() -> None:
    with pytest.raises(ShapeError, match="Attention has no cache: it cannot decode token by token"):
        Attention().new_cache()
