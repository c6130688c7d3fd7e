"""Attention with dropout on its weights, for training on a CPU, where PyTorch has no fused kernel for it.

Computes what softmax, dropout and matmul compute one after the other (a test compares them), with a hand-written
backward pass: six batched matmuls and no avoidable copy, 1.2 to 1.5 times as fast on short sentences
(benchmarks/kernels.py).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.nn.kernels.dropout import apply_mask, draw_mask


def dropped_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None,
    rate: float,
    bias: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """(B, H, T, K), (B, H, S, K), (B, H, S, K) -> (B, H, T, K). `allowed` and `bias` broadcast to (B, H, T, S)."""
    scale = query.size(-1) ** -0.5 if scale is None else scale
    output: Tensor = _DroppedAttention.apply(query, key, value, allowed, rate, bias, scale)  # type: ignore[no-untyped-call]
    return output


class _DroppedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        allowed: Tensor | None,
        rate: float,
        bias: Tensor | None,
        scale: float,
    ) -> Tensor:
        q, k, v = (x.flatten(0, 1) for x in (query, key, value))  # (B·H, length, K), copied only where necessary
        weights = _weights(q, k, allowed, bias, scale, query.shape[:2])
        bits, ctx.threshold, ctx.keep = draw_mask(weights, rate)
        output = torch.bmm(apply_mask(weights, bits, ctx.threshold, ctx.keep), v)  # (B·H, T, V)
        ctx.scale, ctx.bias_shape = scale, None if bias is None else bias.shape
        ctx.save_for_backward(q, k, v, weights, bits)
        return output.view(*query.shape[:3], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, bits = ctx.saved_tensors
        batch, heads = grads[0].shape[:2]
        grad = grads[0].flatten(0, 1)  # (B·H, T, V)
        grad_v = torch.bmm(apply_mask(weights, bits, ctx.threshold, ctx.keep).transpose(1, 2), grad)
        grad_weights = apply_mask(torch.bmm(grad, v.transpose(1, 2)), bits, ctx.threshold, ctx.keep)
        grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)
        grad_bias = None
        if ctx.bias_shape is not None:
            grad_bias = grad_scores.view(batch, heads, *grad_scores.shape[1:]).sum_to_size(ctx.bias_shape)
        grad_scores = grad_scores.mul_(ctx.scale) if grad_bias is None else grad_scores * ctx.scale
        grad_q, grad_k = torch.bmm(grad_scores, k), torch.bmm(grad_scores.transpose(1, 2), q)
        grad_q, grad_k, grad_v = (x.view(batch, heads, *x.shape[1:]) for x in (grad_q, grad_k, grad_v))
        return grad_q, grad_k, grad_v, None, None, grad_bias, None


def _weights(
    q: Tensor, k: Tensor, allowed: Tensor | None, bias: Tensor | None, scale: float, heads: torch.Size
) -> Tensor:
    """Equation 1 up to the softmax: (B·H, T, S)."""
    scores = torch.baddbmm(q.new_zeros(1), q, k.transpose(1, 2), beta=0, alpha=scale)
    by_head = scores.view(*heads, *scores.shape[1:])
    if bias is not None:
        by_head.add_(bias)
    return scores.softmax(dim=-1) if allowed is None else softmax_of_allowed(by_head, allowed).view_as(scores)


def softmax_of_allowed(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax of scores (B, H, T, S), which are overwritten; `allowed` broadcasts to them. No key: all weights 0."""
    # Adding a very negative number masks an entry as well as filling it in, and takes a single fast pass.
    hidden = torch.zeros(allowed.shape, dtype=scores.dtype).masked_fill_(~allowed, torch.finfo(scores.dtype).min / 2)
    weights = scores.add_(hidden).softmax(dim=-1)
    some = allowed.any(dim=-1, keepdim=True)  # a row that may attend to nothing gets zero weights
    return weights if bool(some.all()) else weights.mul_(some)
