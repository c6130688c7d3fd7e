from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from headwise.errors import ShapeError
from headwise.nn.cache import SegmentMemory
from headwise.nn.observer import capture_attention
from headwise.nn.relative import RelativeAttention, RelativePositions, relative_attention


def attention(
    memory: int = 0, clamp: int | None = None, head_dim: int | None = None, dtype: torch.dtype = torch.float32
) -> RelativeAttention:
    torch.manual_seed(0)
    positions = RelativePositions(8, 2, head_dim or 4, clamp=clamp)
    with torch.no_grad():  # biases that matter
        positions.content_bias.normal_()
        positions.position_bias.normal_()
    return RelativeAttention(8, 2, positions=positions, memory=memory, head_dim=head_dim).to(dtype).eval()


def by_the_equation(module: RelativeAttention, x: torch.Tensor, past: torch.Tensor | None = None) -> torch.Tensor:
    """Pair by pair, with the sinusoid of every distance."""
    joined = x if past is None else torch.cat((past, x), dim=1)
    (q,), (k, v) = module.heads(x, 0, 1), module.heads(joined, 1, 3)
    sinusoids = module.positions(joined.size(1)).flip(0)  # row d is distance d
    keys = module.distance_key(sinusoids).view(joined.size(1), 2, -1).transpose(0, 1)
    positions = module.positions
    heads, _ = relative_attention(q, k, v, keys, positions.content_bias, positions.position_bias)
    return module.output(heads.transpose(1, 2).flatten(2))


def test_sinusoids_stand_in_halves_and_far_distances_are_one() -> None:
    positions = RelativePositions(8, 2, 4, clamp=3)
    found = positions(6)
    assert found.shape == (6, 8)
    assert_close(found[-1], torch.tensor([0.0] * 4 + [1.0] * 4))  # distance 0
    assert_close(found[-2], torch.tensor([1.0, 0.1, 0.01, 0.001] * 2).sin() * torch.tensor([1.0] * 4 + [0.0] * 4)
                 + torch.tensor([1.0, 0.1, 0.01, 0.001] * 2).cos() * torch.tensor([0.0] * 4 + [1.0] * 4))  # fmt: skip
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[2], found[3])
    assert RelativePositions(8, 2, 4)(1300).shape == (1300, 8)


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("past", [0, 1, 5])
@pytest.mark.parametrize("clamp", [None, 2])
@pytest.mark.parametrize("head_dim", [None, 3])
def test_it_is_the_equation_with_explicit_distances(
    length: int, past: int, clamp: int | None, head_dim: int | None
) -> None:
    module, x = attention(clamp=clamp, head_dim=head_dim), torch.randn(3, length, 8)
    before = torch.randn(3, past, 8) if past else None
    found = module(x, x, x, causal=True, past=None if before is None else SegmentMemory(4, before))
    assert_close(found, by_the_equation(module, x, before), atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_the_equation_and_the_memory_gets_none() -> None:
    module = attention(dtype=torch.float64)
    x, before = torch.randn(2, 4, 8, dtype=torch.float64), torch.randn(2, 3, 8, dtype=torch.float64)
    weights = tuple(module.parameters())
    grads = torch.autograd.grad(module(x, x, x, causal=True, past=SegmentMemory(3, before)).square().sum(), weights)
    expected = torch.autograd.grad(by_the_equation(module, x, before).square().sum(), weights)
    for one, other in zip(grads, expected, strict=True):
        assert_close(one, other)
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda y: module(y, y, y, causal=True, past=SegmentMemory(3, before)), (x,))
    memory = SegmentMemory(9)
    module(x, x, x, causal=True, past=memory)
    assert memory.states is not None
    assert not memory.states.requires_grad


@pytest.mark.parametrize("memory", [0, 2, 5, 50])
@pytest.mark.parametrize("segment", [1, 3, 4])
def test_segments_with_memory_see_what_one_pass_with_a_mask_sees(memory: int, segment: int) -> None:
    module, x, kept = attention(), torch.randn(2, 12, 8), SegmentMemory(memory)
    pieces = [module(y, y, y, causal=True, past=kept) for y in x.split(segment, dim=1)]
    place = torch.arange(12)
    reached = place[None, :] >= (place // segment * segment - memory)[:, None]
    assert_close(torch.cat(pieces, dim=1), module(x, x, x, reached, causal=True), atol=1e-5, rtol=1e-5)
    assert kept.length == 12
    assert kept.states is not None
    assert kept.states.size(1) == min(memory, 12)


@pytest.mark.parametrize("memory", [1, 3, 30])
def test_token_by_token_with_a_cache_equals_one_pass(memory: int) -> None:
    module, x = attention(memory), torch.randn(2, 9, 8)
    place = torch.arange(9)
    whole = module(x, x, x, place[None, :] >= place[:, None] - memory, causal=True)
    cache = module.new_cache()
    rows = torch.tensor([0, 1])
    for step in range(9):
        newest = x[rows, step : step + 1]
        found = module(newest, newest, newest, causal=True, past=cache)
        assert_close(found, whole[rows, step : step + 1], atol=1e-5, rtol=1e-5)
        if step == 4:
            rows = torch.tensor([1, 0])
            cache.reorder(rows)
    assert cache.length == 9


def test_an_observer_sees_the_weights_with_their_distances() -> None:
    module, x = attention(), torch.randn(2, 5, 8)
    with capture_attention(module) as captured:
        module(x, x, x, causal=True, past=SegmentMemory(3, torch.randn(2, 3, 8)))
    (weights,) = captured[""]
    assert weights.shape == (2, 2, 5, 8)
    assert_close(weights.sum(-1), torch.ones(2, 2, 5))
    assert not weights[..., 0, 4:].any()


def test_without_the_kernel_of_cpus_it_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x, before = attention(), torch.randn(2, 5, 8, requires_grad=True), torch.randn(2, 3, 8)
    allowed = torch.rand(2, 5, 8) < 0.8

    def run() -> list[Tensor]:
        out = module(x, x, x, allowed, causal=True, past=SegmentMemory(3, before))
        return [out, *torch.autograd.grad(out.square().sum(), (x, *module.parameters()))]

    expected = run()
    monkeypatch.setattr("headwise.nn.relative.runs_here", lambda x: False)
    for one, other in zip(run(), expected, strict=True):
        assert_close(one, other, atol=1e-5, rtol=1e-4)
    module.train().dropout = 0.5
    assert not torch.equal(module(x, x, x, causal=True), module(x, x, x, causal=True))


def test_it_is_for_self_attention_that_looks_back() -> None:
    module, x = attention(), torch.randn(1, 2, 8)
    with pytest.raises(ShapeError, match="causal self-attention"):
        module(x, x, x)
    with pytest.raises(ShapeError, match="causal self-attention"):
        module(x, x.clone(), x, causal=True)
    with pytest.raises(ShapeError, match="no bias"):
        module(x, x, x, causal=True, bias=x)
