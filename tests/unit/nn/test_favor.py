from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from headwise.errors import ShapeError
from headwise.nn.attention import scaled_dot_product_attention
from headwise.nn.favor import FavorAttention, favor_weights, orthogonal_features
from headwise.nn.masks import padding_mask
from headwise.nn.observer import capture_attention


def attention(features: int = 24) -> FavorAttention:
    torch.manual_seed(0)
    return FavorAttention(16, 2, features=features).eval()


def test_features_are_orthogonal_in_blocks_with_the_norms_of_gaussian_vectors() -> None:
    torch.manual_seed(0)
    drawn = orthogonal_features(40, 16)
    products = drawn @ drawn.T
    for start in (0, 16):
        block = products[start : start + 16, start : start + 16]
        assert_close(block, torch.diag(block.diagonal()), atol=1e-4, rtol=0.0)
    many = orthogonal_features(4000, 16)
    assert_close(many.square().sum(1).mean(), torch.tensor(16.0), atol=0.5, rtol=0.0)
    assert_close(many.mean(0), torch.zeros(16), atol=0.1, rtol=0.0)


@pytest.mark.parametrize("causal", [False, True])
def test_the_error_against_exact_attention_falls_as_one_over_the_root_of_the_features(causal: bool) -> None:
    """Where scores are small. Where they are large, a few features carry the sum, and far more of them are needed."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 4, 48, 16)
    q, k = q / 4, k / 4
    allowed = torch.ones(48, 48, dtype=torch.bool).tril() if causal else None
    exact, _ = scaled_dot_product_attention(q, k, v, allowed)
    errors = []
    for count in (16, 128, 1024):
        draws = [orthogonal_features(count, 16).T * 16**-0.25 for _ in range(8)]
        found = torch.stack([favor_weights(q, k, draw, causal=causal) @ v for draw in draws])
        errors.append(math.sqrt((found - exact).square().mean()))
    slopes = [math.log(high / low) / math.log(8) for high, low in pairwise(errors)]
    assert all(0.4 < slope < 0.6 for slope in slopes), slopes
    assert errors[-1] < 0.02 * math.sqrt(exact.square().mean())


@pytest.mark.parametrize("causal", [False, True])
def test_the_module_averages_values_by_the_weights_that_an_observer_sees(causal: bool) -> None:
    module, x = attention(), torch.randn(3, 20, 16)
    allowed = None if causal else padding_mask(torch.tensor([20, 11, 1]), 20)[:, None, None]
    with capture_attention(module) as captured:
        found = module(x, x, x, allowed, causal=causal)
    (weights,) = captured[""]
    assert weights.shape == (3, 2, 20, 20)
    assert_close(weights.sum(-1), torch.ones(3, 2, 20))
    _, _, value = module.heads(x, 0, 3)
    assert_close(found, module.output((weights @ value).transpose(1, 2).flatten(2)), atol=1e-5, rtol=1e-5)
    if allowed is not None:
        assert not weights[1, :, :, 11:].any()
        assert_close(found[1:2, :11], module(*[x[1:2, :11]] * 3), atol=1e-5, rtol=1e-5)


def test_no_token_sees_a_later_one() -> None:
    module, x = attention(), torch.randn(1, 200, 16)
    changed = x.clone()
    changed[:, 150:] *= 5
    one, other = (module(y, y, y, causal=True) for y in (x, changed))
    assert torch.equal(one[:, :128], other[:, :128])
    assert_close(one[:, :150], other[:, :150], atol=1e-5, rtol=1e-5)  # in a chunk, rounding depends on its highest key


def test_token_by_token_with_a_cache_equals_all_at_once() -> None:
    module, x = attention(), torch.randn(3, 160, 16)
    whole, cache = module(x, x, x, causal=True), module.new_cache()
    assert_close(module(*[x[:, :130]] * 3, causal=True, past=cache), whole[:, :130], atol=1e-5, rtol=1e-5)
    cache.reorder(torch.tensor([2, 0]))
    for step in range(130, 160):
        newest = x[[2, 0], step : step + 1]
        found = module(newest, newest, newest, causal=True, past=cache)
        assert_close(found, whole[[2, 0], step : step + 1], atol=1e-5, rtol=1e-5)
    assert cache.length == 160


def test_gradients_are_right_and_features_are_kept_but_not_trained() -> None:
    module, x = attention().double(), torch.randn(2, 9, 16, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: module(y, y, y), (x,))
    assert torch.autograd.gradcheck(lambda y: module(y, y, y, causal=True), (x,))
    assert "projection" in dict(module.named_parameters())
    assert not module.projection.requires_grad


def test_what_it_cannot_do_is_one_clear_line() -> None:
    module, x = attention(), torch.randn(1, 4, 16)
    with pytest.raises(ShapeError, match="at least 1"):
        FavorAttention(16, 2, features=0)
    with pytest.raises(ShapeError, match="looks back only"):
        module(x, x, x, past=module.new_cache())
    with pytest.raises(ShapeError, match="no bias"):
        module(x, x, x, bias=torch.zeros(4, 4))
