from __future__ import annotations

import math

import pytest
import torch

from headwise.errors import ShapeError
from headwise.nn.attention import scaled_dot_product_attention
from headwise.nn.masks import causal_mask
from headwise.nn.multi_head import MultiHeadAttention
from headwise.nn.positions import RotaryPositions


def test_mask_shapes_of_two_three_and_four_axes_mean_the_same() -> None:
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2).eval(), torch.randn(3, 5, 8)
    mask = causal_mask(5)
    expected = attention(x, x, x, mask)
    torch.testing.assert_close(attention(x, x, x, mask.expand(3, 5, 5)), expected)
    torch.testing.assert_close(attention(x, x, x, mask.expand(3, 2, 5, 5)), expected)
    torch.testing.assert_close(attention(x, x, x, causal=True), expected)


@pytest.mark.parametrize("rotary", [False, True])
def test_the_bias_of_keys_learns_only_where_it_can_be_seen(rotary: bool) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, rotary=RotaryPositions(4) if rotary else None)
    x = torch.randn(2, 5, 8)
    attention(x, x, x, causal=True).square().sum().backward()
    query, key, value = attention.query_key_value.bias.grad.chunk(3)
    assert query.abs().max() > 1e-3
    assert value.abs().max() > 1e-3
    assert (key.abs().max() > 1e-3) == rotary
    assert rotary or not key.any(), "what Adam makes of rounding is a step of full size"


@pytest.mark.parametrize("head_dim", [2, 4, 7])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_heads_may_be_of_any_size_and_scale(head_dim: int, scale: float | None) -> None:
    """Head by head, as the paper writes it: Concat(head_1, …) W^O."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(6, 3, head_dim=head_dim, scale=scale).eval()
    x, memory, bias = torch.randn(2, 4, 6), torch.randn(2, 5, 6), torch.randn(3, 4, 5)
    assert attention.output.weight.shape == (6, 3 * head_dim)
    weights = attention.query_key_value.weight.view(3, 3, head_dim, 6)  # (query key value, heads, K, D)
    heads = []
    for head in range(3):
        query, key, value = (y @ weights[kind, head].T for kind, y in enumerate((x, memory, memory)))
        used = 1 / math.sqrt(head_dim) if scale is None else scale
        heads.append(scaled_dot_product_attention(query, key, value, bias=bias[head], scale=used)[0])
    expected = torch.cat(heads, dim=-1) @ attention.output.weight.T
    torch.testing.assert_close(attention(x, memory, memory, bias=bias), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("rotary", [False, True])
def test_token_by_token_with_a_cache_equals_all_at_once(rotary: bool) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(6, 3, head_dim=4, rotary=RotaryPositions(4) if rotary else None).eval()
    x, bias, cache = torch.randn(2, 5, 6), torch.randn(3, 5, 5), attention.new_cache()
    whole = attention(x, x, x, bias=bias, causal=True)
    for step in range(5):
        newest = x[:, step : step + 1]
        row = bias[:, step : step + 1, : step + 1]
        found = attention(newest, newest, newest, bias=row, causal=True, past=cache)
        torch.testing.assert_close(found, whole[:, step : step + 1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([(3, 8)] * 3, ["query", "(3, 8)"]),
        ([(1, 2, 8), (1, 2, 6), (1, 2, 8)], ["key", "(1, 2, 6)"]),
        ([(1, 2, 8), (1, 3, 8), (1, 4, 8)], ["3", "4"]),
    ],
)
def test_inputs_of_wrong_shapes_are_one_clear_line(shapes: list[tuple[int, ...]], words: list[str]) -> None:
    with pytest.raises(ShapeError) as caught:
        MultiHeadAttention(8, 2)(*map(torch.zeros, shapes))
    assert all(word in str(caught.value) for word in words)


def test_heads_must_divide_the_width_unless_their_size_is_given() -> None:
    with pytest.raises(ShapeError, match=r"num_heads \(3\) must divide model_dim \(10\)"):
        MultiHeadAttention(10, 3)
    assert MultiHeadAttention(10, 3, head_dim=4).head_dim == 4
