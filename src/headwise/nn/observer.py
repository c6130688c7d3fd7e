"""Captures the attention weights that a model uses, without changing its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import get_ident

import torch
from torch import Tensor, nn

from headwise.nn.attention import Attention


@contextmanager
def capture_attention(
    model: nn.Module, select: Callable[[str], bool] = lambda name: True
) -> Iterator[dict[str, list[Tensor]]]:
    """Collects, within the block, the weights (B, H, T, S) of every call of an attention in a list under its name.

    Each kind of attention computes its weights, masks and biases included, in addition to its output: outputs are the
    same bit for bit, and there is no cost outside of the block. What other threads compute is not captured. Names are
    those of `model.named_modules()`: `encoder.layers.0.self_attention`, ….
    """
    captured: dict[str, list[Tensor]] = {}
    observed = [(n, m) for n, m in model.named_modules() if isinstance(m, Attention) and select(n)]
    try:
        for name, module in observed:
            captured[name] = []
            module.observer = partial(_keep_weights, captured[name], get_ident())
        yield captured
    finally:
        for _, module in observed:
            module.observer = None


@torch.no_grad()
def _keep_weights(kept: list[Tensor], thread: int, weights: Callable[[], Tensor]) -> None:
    if get_ident() == thread:  # another thread may use the model at the same time
        kept.append(weights())
