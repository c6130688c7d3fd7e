"""Seeing attention: the weights that a model uses, without changing a number of what it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from headwise.nn.attention import MultiHeadAttention


@contextmanager
def capture_attention(
    model: nn.Module, select: Callable[[str], bool] = lambda name: True
) -> Iterator[dict[str, list[Tensor]]]:
    """Within the block, every call of an attention adds its weights (B, H, T, S) to the list under its name.

    The weights are computed beside the output by the reference function, so outputs are the same bit for bit; outside
    the block nothing is computed. Names are those of `model.named_modules()`: `encoder.layers.0.self_attention`, ….
    """
    captured: dict[str, list[Tensor]] = {}
    observed = [(n, m) for n, m in model.named_modules() if isinstance(m, MultiHeadAttention) and select(n)]
    try:
        for name, module in observed:
            captured[name] = []
            module.observer = captured[name].append
        yield captured
    finally:
        for _, module in observed:
            module.observer = None
