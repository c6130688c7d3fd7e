"""Seeing attention: the weights that a model uses, without changing a number of what it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from headwise.nn.attention import Attention


@contextmanager
def capture_attention(
    model: nn.Module, select: Callable[[str], bool] = lambda name: True
) -> Iterator[dict[str, list[Tensor]]]:
    """Within the block, every call of an attention adds its weights (B, H, T, S) to the list under its name.

    Each kind of attention computes its own weights, masks and biases included, beside its output: outputs are the same
    bit for bit, and outside of the block nothing is computed. Names are those of `model.named_modules()`:
    `encoder.layers.0.self_attention`, ….
    """
    captured: dict[str, list[Tensor]] = {}
    observed = [(n, m) for n, m in model.named_modules() if isinstance(m, Attention) and select(n)]
    try:
        for name, module in observed:
            captured[name] = []
            module.observer = partial(_keep_weights, captured[name])
        yield captured
    finally:
        for _, module in observed:
            module.observer = None


@torch.no_grad()
def _keep_weights(kept: list[Tensor], weights: Callable[[], Tensor]) -> None:
    kept.append(weights())
