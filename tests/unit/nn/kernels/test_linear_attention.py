from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from headwise.nn.favor import favor_weights, orthogonal_features
from headwise.nn.kernels import linear_attention as kernel
from headwise.nn.kernels.linear_attention import advance, causal_linear_attention, linear_attention


def inputs(rows: int, length: int, spread: float, features: int = 6) -> tuple[list[torch.Tensor], torch.Tensor]:
    tensors = [(torch.randn(rows, length, 4, dtype=torch.float64) * spread).requires_grad_() for _ in range(3)]
    return tensors, orthogonal_features(features, 4).double().mT * 4**-0.25


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_chunks_compute_the_explicit_sum_forward_and_backward(data: st.DataObject) -> None:
    torch.manual_seed(data.draw(st.integers(0, 99)))
    rows, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 40))
    causal, padded = data.draw(st.booleans()), data.draw(st.booleans())
    (q, k, v), projection = inputs(rows, length, data.draw(st.sampled_from([0.3, 1.0, 4.0])))
    real = torch.rand(rows, length, 1) < 0.7 if padded else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_CHUNK", data.draw(st.sampled_from([1, 3, 8, 128])))
        found = (causal_linear_attention if causal else linear_attention)(q, k, v, projection, real)
        expected = favor_weights(q, k, projection, real, causal) @ v
        assert_close(found, expected)
        weight = torch.randn_like(found)
        for one, other in zip(
            torch.autograd.grad((found * weight).sum(), (q, k, v)),
            torch.autograd.grad((expected * weight).sum(), (q, k, v)), strict=True,
        ):  # fmt: skip
            assert_close(one, other, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("attend", [linear_attention, causal_linear_attention])
def test_gradients_are_right(attend: object, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(kernel, "_CHUNK", 3)
    tensors, projection = inputs(1, 7, 1.0)
    assert torch.autograd.gradcheck(lambda *x: attend(*x, projection, None), tensors)  # type: ignore[operator]


def test_steps_from_running_sums_go_on_as_one_pass_does() -> None:
    torch.manual_seed(0)
    (q, k, v), projection = inputs(2, 300, 1.5)
    whole, past, start = causal_linear_attention(q, k, v, projection, None), None, 0
    for count in (7, 1, 1, 150, 1, 140):
        part = slice(start, start + count)
        found, past = advance(q[:, part], k[:, part], v[:, part], projection, past)
        assert_close(found, whole[:, part].detach())
        start += count


def test_a_key_that_is_thousands_of_times_as_high_as_those_before_it_overflows_nothing() -> None:
    torch.manual_seed(0)
    (q, k, v), projection = inputs(1, 40, 1.0, features=16)
    with torch.no_grad():
        k[:, :30] *= 30.0  # exponents of -1000 and below
    for dtype in (torch.float32, torch.float64):
        tensors = [x.detach().to(dtype).requires_grad_() for x in (q, k, v)]
        found = causal_linear_attention(*tensors, projection.to(dtype), None)
        grads = torch.autograd.grad(found.sum(), tensors)
        assert all(bool(x.isfinite().all()) for x in (found, *grads))
