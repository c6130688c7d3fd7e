from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from headwise.errors import ShapeError
from headwise.nn.block_sparse import BlockSparseAttention, block_table
from headwise.nn.masks import padding_mask
from headwise.nn.observer import capture_attention


def attention(
    block: int = 4, random: int = 2, dtype: torch.dtype = torch.float32, **options: bool | int
) -> BlockSparseAttention:
    torch.manual_seed(0)
    return BlockSparseAttention(8, 2, block=block, random=random, **options).to(dtype).eval()


def densely(module: BlockSparseAttention, x: torch.Tensor, allowed: torch.Tensor | None, causal: bool) -> torch.Tensor:
    """All pairs, masked."""
    _, _, value = module.heads(x, 0, 3)
    return module.output((module.weights(x, allowed, causal)[0] @ value).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("causal", [False, True])
def test_a_block_sees_its_neighbours_the_global_blocks_and_as_many_random_ones_as_it_is_told(causal: bool) -> None:
    table = block_table(3, 20, 4, 1, causal)
    for row in range(3, 17):
        fixed = {0, row - 1, row} if causal else {0, 19, row - 1, row, row + 1}
        for head in range(3):
            seen = table[head, row].tolist()
            assert fixed <= set(seen)
            random = [n for n in seen if n not in fixed and n >= 0]
            assert len(random) == len(set(random)) == (min(4, row - 2) if causal else 4)
            assert not causal or max(seen) == row
    assert not torch.equal(table[0], table[1]), "each head has its own"
    assert torch.equal(table, block_table(3, 20, 4, 1, causal))
    assert not torch.equal(table, block_table(3, 20, 4, 2, causal))


def test_a_causal_pattern_does_not_depend_on_what_comes_later() -> None:
    assert torch.equal(block_table(2, 30, 3, 0, True)[:, :12], block_table(2, 12, 3, 0, True))


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_gathered_blocks_compute_what_a_dense_mask_computes_forward_and_backward(data: st.DataObject) -> None:
    rows, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 70))
    block, random = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 3))
    causal = data.draw(st.booleans())
    draw = causal or data.draw(st.booleans())
    lengths = data.draw(st.none() | st.lists(st.integers(1, length), min_size=rows, max_size=rows))
    module = attention(block, random, draw=draw, seed=data.draw(st.integers(0, 9)))
    x = torch.randn(rows, length, 8, requires_grad=True)
    allowed = None if lengths is None else padding_mask(torch.tensor(lengths), length)[:, None, None]
    if not draw and -(-length // block) <= 5 + 2 * random:
        return  # sees everything
    found, expected = module(x, x, x, allowed, causal=causal), densely(module, x, allowed, causal)
    real = torch.ones(rows, length, dtype=torch.bool) if allowed is None else allowed[:, 0, 0]
    assert_close(found[real], expected[real], atol=1e-5, rtol=1e-5)
    weight = torch.randn_like(found) * real[..., None]
    sources = (x, *module.parameters())
    for one, other in zip(
        torch.autograd.grad((found * weight).sum(), sources),
        torch.autograd.grad((expected * weight).sum(), sources), strict=True,
    ):  # fmt: skip
        assert_close(one, other, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("length", [3, 17, 28, 29, 61])
def test_padding_changes_nothing(length: int) -> None:
    module, x = attention(), torch.randn(2, 90, 8)
    allowed = padding_mask(torch.tensor([90, length]), 90)[:, None, None]
    alone = module(*[x[1:, :length]] * 3)
    assert_close(module(x, x, x, allowed)[1:, :length], alone, atol=1e-5, rtol=1e-5)


def test_a_short_text_sees_all_of_itself() -> None:
    module, x = attention(4, 2), torch.randn(1, 28, 8)  # 7 blocks: 5 + 2
    with capture_attention(module) as captured:
        module(x, x, x)
        module(*[torch.randn(1, 29, 8)] * 3)
    assert (captured[""][0] > 0).all()
    assert not (captured[""][1] > 0).all()


def test_without_drawing_the_first_block_counts_once_more_for_every_random_block() -> None:
    module, x = attention(2, 3, draw=False), torch.randn(1, 30, 8)
    weights, _ = module.weights(x)
    pairs = module.dense([15], 30, False)
    assert pairs[0, 0, 10].tolist() == [n < 2 or 8 <= n < 14 or n >= 28 for n in range(30)]
    q, k, _ = module.heads(x, 0, 3)
    scores = (q @ k.mT / 2).exp() * pairs
    scores[:, :, 2:28, :2] *= 4
    assert_close(weights, scores / scores.sum(-1, keepdim=True), atol=1e-6, rtol=1e-5)
    found = module(x, x, x)
    assert_close(found, densely(module, x, None, False), atol=1e-5, rtol=1e-5)


def test_gradients_are_right() -> None:
    module, x = attention(2, 1, torch.float64), torch.randn(2, 15, 8, dtype=torch.float64, requires_grad=True)
    allowed = padding_mask(torch.tensor([15, 8]), 15)[:, None, None]
    assert torch.autograd.gradcheck(lambda y: module(y, y, y, allowed), (x,))
    assert torch.autograd.gradcheck(lambda y: module(y, y, y, causal=True), (x,))


def test_token_by_token_with_a_cache_equals_all_at_once() -> None:
    module, x = attention(3, 2), torch.randn(2, 50, 8)
    whole, cache = module(x, x, x, causal=True), module.new_cache()
    assert_close(module(*[x[:, :13]] * 3, causal=True, past=cache), whole[:, :13], atol=1e-5, rtol=1e-5)
    for step in range(13, 50):
        newest = x[:, step : step + 1]
        found = module(newest, newest, newest, causal=True, past=cache)
        assert_close(found, whole[:, step : step + 1], atol=1e-5, rtol=1e-5)


def test_what_it_cannot_do_is_one_clear_line() -> None:
    module, x = attention(), torch.randn(1, 40, 8)
    with pytest.raises(ShapeError, match="at least 1 token"):
        BlockSparseAttention(8, 2, block=0)
    with pytest.raises(ShapeError, match="self-attention"):
        module(x, x.clone(), x)
    with pytest.raises(ShapeError, match="looks back only"):
        module(x, x, x, past=module.new_cache())
    with pytest.raises(ShapeError, match="draw=False"):
        attention(draw=False)(x, x, x, causal=True)
