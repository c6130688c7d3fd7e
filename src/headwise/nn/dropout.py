"""Dropout that costs little on a CPU.

`F.dropout` spends most of its time drawing one float a number. Sixteen random bits a number are enough to hit any
rate within 1/65536, and a 64-bit draw holds four of them: forward and backward take less than half the time
(benchmarks/kernels.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError

_BITS = 16
_thread = threading.local()


@contextmanager
def seeded_dropout(seed: int) -> Iterator[None]:
    """Within the block this thread's masks are a function of `seed`, whatever is drawn elsewhere."""
    _thread.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _thread.generator = None


def random_bits(count: int) -> Tensor:
    """`count` independent uniform draws from all of int16, from this thread's generator or else torch's default one."""
    generator: torch.Generator | None = getattr(_thread, "generator", None)
    # The bounds matter: a plain random_() never sets the sign bit, and a quarter of the draws would be biased.
    words = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None, generator=generator)
    return words.view(torch.int16)[:count]


def draw_mask(x: Tensor, rate: float) -> tuple[Tensor, int, float]:
    """(bits like x, threshold, scale): a number is kept where bits >= threshold, and kept ones grow by scale."""
    dropped = round(rate * 2**_BITS)
    return random_bits(x.numel()).view(x.shape), dropped - 2 ** (_BITS - 1), 2**_BITS / (2**_BITS - dropped)


def apply_mask(x: Tensor, bits: Tensor, threshold: int, scale: float) -> Tensor:
    kept = torch.empty_like(x, memory_format=torch.contiguous_format)
    torch.ge(bits, threshold, out=kept)  # 0.0 and 1.0, written as floats straight away
    return torch.addcmul(x.new_zeros(1), kept, x, value=scale, out=kept)  # kept · x · scale in one pass


class _BitDropout(torch.autograd.Function):
    """Keeps the raw bits (2 bytes a number) for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        bits, ctx.threshold, ctx.scale = draw_mask(x, rate)
        ctx.save_for_backward(bits)
        return apply_mask(x, bits, ctx.threshold, ctx.scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (bits,) = ctx.saved_tensors
        return apply_mask(grads[0], bits, ctx.threshold, ctx.scale), None


def dropout(x: Tensor, rate: float) -> Tensor:
    """Zeroes each number with probability `rate` and scales the others by 1 / (1 - rate), so the mean stays."""
    if rate == 0.0:
        return x
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        result: Tensor = _BitDropout.apply(x, rate)  # type: ignore[no-untyped-call]
        return result
    return F.dropout(x, rate)


class _DroppedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, rate: float) -> Tensor:
        bits, ctx.threshold, ctx.scale = draw_mask(y, rate)
        ctx.save_for_backward(bits)
        kept = torch.empty_like(y, memory_format=torch.contiguous_format)
        torch.ge(bits, ctx.threshold, out=kept)
        return torch.addcmul(x, kept, y, value=ctx.scale, out=kept)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        (bits,) = ctx.saved_tensors
        return grads[0], apply_mask(grads[0], bits, ctx.threshold, ctx.scale), None


class _DroppedRelu(torch.autograd.Function):
    """Where the result is positive the input was, and was kept: the result alone is enough for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        out = apply_mask(x, *draw_mask(x, rate)).relu_()
        ctx.scale = 2**_BITS / (2**_BITS - round(rate * 2**_BITS))
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (out,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grads[0], out, 0).mul_(ctx.scale), None


class Dropout(nn.Module):
    """The paper's section 5.4, in training mode only."""

    def __init__(self, rate: float = 0.0) -> None:
        super().__init__()
        if not 0.0 <= rate < 1.0:
            raise ShapeError(f"a dropout rate must be at least 0 and less than 1, not {rate}")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate) if self.training else x

    def added(self, x: Tensor, y: Tensor) -> Tensor:
        """x + dropout(y), in one pass where that can be."""
        if not self._own(y) or x.shape != y.shape:
            plain: Tensor = x + self(y)
            return plain
        result: Tensor = _DroppedSum.apply(x, y, self.rate)  # type: ignore[no-untyped-call]
        return result

    def after_relu(self, x: Tensor) -> Tensor:
        """dropout(relu(x)); only the result is kept for the way back, less than half the memory of the two alone."""
        if not self._own(x):
            plain: Tensor = self(F.relu(x))
            return plain
        result: Tensor = _DroppedRelu.apply(x, self.rate)  # type: ignore[no-untyped-call]
        return result

    def _own(self, x: Tensor) -> bool:
        """Whether our own masks are drawn here, rather than PyTorch's or none."""
        return self.training and self.rate > 0.0 and x.device.type == "cpu" and not torch.compiler.is_compiling()

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
