"""Dropout that is cheap on a CPU.

`F.dropout` spends most of its time drawing one float per element. Sixteen random bits per element approximate any rate
within 1/65536, and one 64-bit draw has four of them: forward and backward take less than half the time
(benchmarks/kernels.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.nn.kernels.precision import in_float32

_BITS = 16
_thread = threading.local()


@contextmanager
def seeded_dropout(seed: int) -> Iterator[None]:
    """Makes this thread's masks within the block depend on `seed` alone, whatever other threads draw."""
    _thread.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _thread.generator = None


def random_bits(count: int) -> Tensor:
    """Draws `count` independent integers, uniform over int16, from this thread's generator or torch's default one."""
    generator: torch.Generator | None = getattr(_thread, "generator", None)
    # The bounds matter: a plain random_() never sets the sign bit, which would bias a quarter of the draws.
    words = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None, generator=generator)
    return words.view(torch.int16)[:count]


def draw_mask(x: Tensor, rate: float) -> tuple[Tensor, int, float]:
    """Returns (bits, threshold, scale): elements of x with bits >= threshold are kept and multiplied by scale."""
    dropped = _dropped(rate)
    return random_bits(x.numel()).view(x.shape), dropped - 2 ** (_BITS - 1), 2**_BITS / (2**_BITS - dropped)


def _dropped(rate: float) -> int:
    """How many of all values of the bits drop an element; never all of them, since the others are scaled up."""
    values: int = 2**_BITS
    return min(round(rate * values), values - 1)


def apply_mask(x: Tensor, bits: Tensor, threshold: int, scale: float) -> Tensor:
    kept = torch.empty_like(x, memory_format=torch.contiguous_format)
    torch.ge(bits, threshold, out=kept)  # 0.0 and 1.0, written as floats straight away
    return torch.addcmul(x.new_zeros(1), kept, x, value=scale, out=kept)  # kept · x · scale in one pass


class _BitDropout(torch.autograd.Function):
    """Saves the raw bits, 2 bytes per element, for the backward pass."""

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
    """Zeroes each element with probability `rate` and scales the others by 1 / (1 - rate), which keeps the mean."""
    if rate == 0.0:
        return x
    if not runs_here(x):
        return F.dropout(x, rate)
    result: Tensor = _BitDropout.apply(x, rate)  # type: ignore[no-untyped-call]
    return result


@in_float32  # the sum over all layers is not rounded
def dropped_sum(x: Tensor, y: Tensor, rate: float) -> Tensor:
    """Returns x + dropout(y), in one pass where both have the same shape."""
    if rate == 0.0 or x.shape != y.shape or not runs_here(y):
        return x + dropout(y, rate)
    result: Tensor = _DroppedSum.apply(x, y, rate)  # type: ignore[no-untyped-call]
    return result


def dropped_relu(x: Tensor, rate: float) -> Tensor:
    """Returns dropout(relu(x)); saves only the result for the backward pass, less than half the memory of the two."""
    if rate == 0.0 or not runs_here(x):
        return dropout(F.relu(x), rate)
    result: Tensor = _DroppedRelu.apply(x, rate)  # type: ignore[no-untyped-call]
    return result


def runs_here(x: Tensor) -> bool:
    """Whether these kernels apply: on CPU tensors, outside of torch.compile."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


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
    """A positive result means that the input was positive and kept: the backward pass needs the result alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        out = apply_mask(x, *draw_mask(x, rate)).relu_()
        ctx.scale = 2**_BITS / (2**_BITS - _dropped(rate))
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (out,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grads[0], out, 0).mul_(ctx.scale), None
