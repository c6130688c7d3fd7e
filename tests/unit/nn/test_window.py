from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from headwise.errors import ShapeError
from headwise.nn.attention import scaled_dot_product_attention
from headwise.nn.masks import padding_mask
from headwise.nn.observer import capture_attention
from headwise.nn.window import WindowAttention, WindowPattern, window_attention


def attention(window: int, dtype: torch.dtype = torch.float32, **options: bool) -> WindowAttention:
    torch.manual_seed(0)
    module = WindowAttention(8, 2, window=window, **options).to(dtype).eval()
    for name, parameter in module.named_parameters():  # biases that matter
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return module


def densely(module: WindowAttention, x: torch.Tensor, pattern: WindowPattern) -> torch.Tensor:
    """Longformer's definition, row by row: all pairs, masked; global rows by their own projections."""
    weights, _ = module.weights(x, pattern)
    _, _, value = module.heads(x, 0, 3)
    heads = weights @ value
    if pattern.global_tokens is not None:
        _, _, everywhere = module._global_heads(x, 0, 3)
        heads = torch.where(pattern.global_tokens[:, None, :, None], weights @ everywhere, heads)
    return module.output(heads.transpose(1, 2).flatten(2))


def test_the_pattern_is_a_band_with_global_rows_and_columns() -> None:
    real = padding_mask(torch.tensor([7, 4]), 7)
    marked = torch.zeros(2, 7, dtype=torch.bool)
    marked[:, 0] = True
    marked[1, 6] = True  # padding cannot be global
    dense = WindowPattern(real, marked).dense(7, 1)
    assert dense.shape == (2, 1, 7, 7)
    lines = ["".join(".x"[int(cell)] for cell in row) for row in dense[1, 0].tolist()]
    assert lines == ["xxxx...", "xxx....", "xxxx...", "x.xx...", ".......", ".......", "......."]
    assert dense[0, 0, 0].all()
    assert dense[0, 0, 3].tolist() == [True, False, True, True, True, False, False]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_blocks_compute_what_a_dense_mask_computes_forward_and_backward(data: st.DataObject) -> None:
    rows, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 90))
    side = data.draw(st.integers(1, 40))
    causal = data.draw(st.booleans())
    lengths = data.draw(st.none() | st.lists(st.integers(0, length), min_size=rows, max_size=rows))
    share = data.draw(st.sampled_from([0.0, 0.1, 0.9]))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    real = None if lengths is None else padding_mask(torch.tensor(lengths), length)
    marked = None if causal or not share else torch.rand(rows, length) < share
    pattern = WindowPattern(real, marked)
    q, k, v = (torch.randn(rows, 2, length, 3, requires_grad=True) for _ in range(3))
    allowed = pattern.dense(length, side, causal)
    if pattern.global_tokens is not None:  # global queries are computed elsewhere
        allowed = allowed & ~pattern.global_tokens[:, None, :, None]
    expected, _ = scaled_dot_product_attention(q, k, v, allowed)
    found = window_attention(q, k, v, side, pattern, causal=causal)
    counted = allowed.any(-1, keepdim=True).expand_as(found)
    assert_close(found[counted], expected[counted], atol=1e-5, rtol=1e-5)
    weight = torch.randn_like(found) * counted
    for one, other in zip(
        torch.autograd.grad((found * weight).sum(), (q, k, v)),
        torch.autograd.grad((expected * weight).sum(), (q, k, v)), strict=True,
    ):  # fmt: skip
        assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("marked", ["none", "first", "some", "all"])
@pytest.mark.parametrize("padded", [False, True])
def test_the_module_is_longformers_definition(marked: str, padded: bool) -> None:
    module, x = attention(6, torch.float64), torch.randn(3, 50, 8, dtype=torch.float64, requires_grad=True)
    real = padding_mask(torch.tensor([50, 33, 1]), 50) if padded else None
    global_tokens = torch.zeros(3, 50, dtype=torch.bool)
    global_tokens[:, 0] = marked != "none"
    global_tokens[0, [7, 30]] = marked == "some"
    global_tokens |= marked == "all"
    pattern = WindowPattern(real, global_tokens)
    found, expected = module(x, x, x, pattern=pattern), densely(module, x, pattern)
    assert_close(found, expected)
    sources = (x, *(p for p in module.parameters() if marked != "none" or p is not module.global_query_key_value))
    grads = torch.autograd.grad(found.square().sum(), sources, allow_unused=True)
    others = torch.autograd.grad(expected.square().sum(), sources, allow_unused=True)
    for one, other in zip(grads, others, strict=True):
        assert (one is None) == (other is None) or marked == "none"
        if one is not None and other is not None:
            assert_close(one, other)


def test_a_mask_of_padding_says_the_same_as_a_pattern() -> None:
    module, x = attention(4), torch.randn(2, 40, 8)
    real = padding_mask(torch.tensor([40, 21]), 40)
    assert_close(module(x, x, x, real[:, None, None]), module(x, x, x, pattern=WindowPattern(real)))
    alone = module(*[x[1:, :21]] * 3)
    assert_close(module(x, x, x, real[:, None, None])[1:, :21], alone, atol=1e-6, rtol=1e-5)


def test_gradients_are_right() -> None:
    module, x = attention(4, torch.float64), torch.randn(2, 9, 8, dtype=torch.float64, requires_grad=True)
    marked = torch.zeros(2, 9, dtype=torch.bool)
    marked[0, 3] = True
    assert torch.autograd.gradcheck(lambda y: module(y, y, y, pattern=WindowPattern(None, marked)), (x,))
    assert torch.autograd.gradcheck(lambda y: module(y, y, y, causal=True), (x,))


@pytest.mark.parametrize("window", [2, 8, 200])
def test_token_by_token_with_a_cache_equals_all_at_once(window: int) -> None:
    module, x = attention(window, global_tokens=False), torch.randn(2, 70, 8)
    whole, cache = module(x, x, x, causal=True), module.new_cache()
    start = module(*[x[:, :5]] * 3, causal=True, past=cache)
    assert_close(start, whole[:, :5], atol=1e-5, rtol=1e-5)
    for step in range(5, 70):
        newest = x[:, step : step + 1]
        found = module(newest, newest, newest, causal=True, past=cache)
        assert_close(found, whole[:, step : step + 1], atol=1e-5, rtol=1e-5)


def test_dropout_falls_on_the_weights_in_training_only() -> None:
    module, x = WindowAttention(8, 2, 0.5, window=4), torch.randn(1, 40, 8)
    assert not torch.equal(module(x, x, x), module(x, x, x))
    module.eval()
    assert torch.equal(module(x, x, x), module(x, x, x))


def test_an_observer_sees_zeros_outside_of_the_pattern() -> None:
    module, x = attention(4), torch.randn(2, 12, 8)
    marked = torch.zeros(2, 12, dtype=torch.bool)
    marked[:, 0] = True
    pattern = WindowPattern(None, marked)
    with capture_attention(module) as captured:
        module(x, x, x, pattern=pattern)
    (weights,) = captured[""]
    assert_close(weights.sum(-1), torch.ones(2, 2, 12))
    assert torch.equal(weights > 0, pattern.dense(12, 2).expand(2, 2, 12, 12))
    assert torch.equal(weights > 0, captured.allowed[""][0])


def test_what_it_cannot_do_is_one_clear_line() -> None:
    module, x = attention(4), torch.randn(2, 6, 8)
    marked = torch.ones(2, 6, dtype=torch.bool)
    with pytest.raises(ShapeError, match="even number"):
        WindowAttention(8, 2, window=3)
    with pytest.raises(ShapeError, match="self-attention"):
        module(x, x.clone(), x)
    with pytest.raises(ShapeError, match="no bias"):
        module(x, x, x, bias=torch.zeros(6, 6))
    with pytest.raises(ShapeError, match="mask of padding"):
        module(x, x, x, torch.ones(6, 6, dtype=torch.bool))
    with pytest.raises(ShapeError, match="whole text"):
        module(x, x, x, causal=True, pattern=WindowPattern(None, marked))
    with pytest.raises(ShapeError, match="looks back only"):
        module(x, x, x, past=module.new_cache())
