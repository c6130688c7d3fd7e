from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from headwise.errors import ShapeError
from headwise.nn import capture_attention, scaled_dot_product_attention
from headwise.nn.global_attention import AdditiveScore, GlobalAttention, build_score

KINDS = ("additive", "dot", "general")


@pytest.mark.parametrize("kind", KINDS)
def test_padding_gets_no_weight_and_the_rest_sums_to_one(kind: str) -> None:
    torch.manual_seed(1)
    attention = GlobalAttention(build_score(kind, 4, 4))
    query, memory = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    allowed = torch.tensor([[[True] * 5], [[True, True, False, False, False]]])
    output, weights = attention.attend(query, attention.score.keys(memory), memory, allowed)
    assert output.shape == (2, 3, 4)
    assert_close(weights.sum(dim=-1), torch.ones(2, 3))
    assert weights[1, :, 2:].eq(0).all()


def test_dot_is_scaled_dot_product_attention_without_the_scale() -> None:
    attention = GlobalAttention(build_score("dot", 4, 4))
    query, memory = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    wanted, _ = scaled_dot_product_attention(query, memory, memory, scale=1.0)
    assert_close(attention(query, attention.score.keys(memory), memory), wanted)


def test_additive_is_our_additive_attention_with_keys_computed_once() -> None:
    score = build_score("additive", 4, 6)
    assert isinstance(score, AdditiveScore)
    attention = GlobalAttention(score)
    query, memory = torch.randn(2, 3, 4), torch.randn(2, 5, 6)
    wanted, weights = score.additive(query, memory, memory)
    found = attention.attend(query, score.keys(memory), memory, None)
    assert_close(found, (wanted, weights))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_observed_like_any_attention(kind: str) -> None:
    attention = GlobalAttention(build_score(kind, 4, 4))
    query, memory = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    keys = attention.score.keys(memory)
    with capture_attention(torch.nn.ModuleDict({"cross": attention})) as captured:
        seen = attention(query, keys, memory)
        (weights,) = captured["cross"]
    assert weights.shape == (2, 1, 3, 5)
    assert_close(weights[:, 0] @ memory, seen)
    assert_close(attention(query, keys, memory), seen, rtol=0, atol=0)


def test_mistakes_are_one_clear_line() -> None:
    with pytest.raises(ShapeError, match="additive, dot or general, not 'none'"):
        build_score("none", 4, 4)
    with pytest.raises(ShapeError, match="states of one width, not 4 and 6"):
        build_score("dot", 4, 6)
