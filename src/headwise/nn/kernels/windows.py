"""Overlapping windows of a sequence, for attention in blocks.

The forward pass copies nothing but a margin: windows are strides over one tensor. The backward pass adds them up block
by block, several times as fast as autograd's own.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def windows(x: Tensor, block: int, side: int) -> Tensor:
    """(B, H, T, K) -> (B · T / block, H, block + 2 · side, K): each block with `side` positions on either side of it.

    T must be a multiple of `block`. The rows of a batch stand one after the other, so that the first window of a row
    begins with the end of the row before it: the caller's mask has to hide what is not of the row.
    """
    if torch.compiler.is_compiling():
        return _strided(x, block, side)
    found: Tensor = _Windows.apply(x, block, side)  # type: ignore[no-untyped-call]
    return found


def _strided(x: Tensor, block: int, side: int) -> Tensor:
    stream = x.transpose(1, 2).flatten(0, 1)  # (B · T, H, K)
    return F.pad(stream, (0, 0, 0, 0, side, side)).unfold(0, block + 2 * side, block).mT


class _Windows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, block: int, side: int) -> Tensor:
        ctx.block, ctx.side, ctx.rows = block, side, x.size(0)
        return _strided(x, block, side)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (grad,), block, side = grads, ctx.block, ctx.side
        count, heads, size, width = grad.shape
        parts = -(-size // block)  # blocks that a window reaches into
        total = grad.new_zeros(count + parts - 1, block, heads, width)
        for number in range(parts):
            part = grad[:, :, number * block : (number + 1) * block].transpose(1, 2)  # (count, at most block, H, K)
            total[number : number + count, : part.size(1)] += part
        stream = total.flatten(0, 1)[side : side + count * block]
        return stream.view(ctx.rows, -1, heads, width).transpose(1, 2), None, None
