"""Attention with dropout on its weights, for training on a CPU, where PyTorch has no fused kernel for it.

The same numbers as softmax, dropout and matmul one after the other (a test says so), with the way back written by hand:
six batched matmuls and no copy that can be saved, 1.2 to 1.5 times as fast on short sentences (benchmarks/kernels.py).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.nn.dropout import apply_mask, draw_mask


def dropped_attention(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None, rate: float) -> Tensor:
    """(B, H, T, K), (B, H, S, K), (B, H, S, K) -> (B, H, T, K). `allowed` broadcasts to (B, H, T, S)."""
    output: Tensor = _DroppedAttention.apply(query, key, value, allowed, rate)  # type: ignore[no-untyped-call]
    return output


class _DroppedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None, rate: float) -> Tensor:
        q, k, v = (x.flatten(0, 1) for x in (query, key, value))  # (B·H, length, K), copied where it must be
        weights = _weights(q, k, allowed, query.shape[:2])
        bits, ctx.threshold, ctx.keep = draw_mask(weights, rate)
        output = torch.bmm(apply_mask(weights, bits, ctx.threshold, ctx.keep), v)  # (B·H, T, K)
        ctx.save_for_backward(q, k, v, weights, bits)
        return output.view_as(query)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        q, k, v, weights, bits = ctx.saved_tensors
        batch, heads, scale = *grads[0].shape[:2], q.size(-1) ** -0.5
        grad = grads[0].flatten(0, 1)  # (B·H, T, K)
        grad_v = torch.bmm(apply_mask(weights, bits, ctx.threshold, ctx.keep).transpose(1, 2), grad)
        grad_weights = apply_mask(torch.bmm(grad, v.transpose(1, 2)), bits, ctx.threshold, ctx.keep)
        grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype).mul_(scale)
        grad_q, grad_k = torch.bmm(grad_scores, k), torch.bmm(grad_scores.transpose(1, 2), q)
        grad_q, grad_k, grad_v = (x.view(batch, heads, *x.shape[1:]) for x in (grad_q, grad_k, grad_v))
        return grad_q, grad_k, grad_v, None, None


def _weights(q: Tensor, k: Tensor, allowed: Tensor | None, heads: torch.Size) -> Tensor:
    """Equation 1 up to the softmax: (B·H, T, S)."""
    scores = torch.baddbmm(q.new_zeros(1), q, k.transpose(1, 2), beta=0, alpha=q.size(-1) ** -0.5)
    if allowed is None:
        return scores.softmax(dim=-1)
    # Adding the most negative number hides a cell as well as filling it in, and is one quick pass.
    hidden = torch.zeros(allowed.shape, dtype=q.dtype).masked_fill_(~allowed, torch.finfo(q.dtype).min / 2)
    scores.view(*heads, *scores.shape[1:]).add_(hidden)
    weights = scores.softmax(dim=-1)
    some = allowed.any(dim=-1, keepdim=True)  # a row that may attend to nothing is zero
    if not bool(some.all()):
        weights.view(*heads, *weights.shape[1:]).mul_(some)
    return weights
