"""Captures the attention weights that a model uses, without changing its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

import torch
from torch import Tensor, nn

from headwise.nn.attention import Attention


class Captured(dict[str, list[Tensor]]):
    """The weights (B, H, T, S) of every call of an attention, in a list under its name.

    `allowed` has in their places what may attend: True also where a weight is so small that it is stored as 0.
    """

    def __init__(self) -> None:
        super().__init__()
        self.allowed: dict[str, list[Tensor]] = {}


@contextmanager
def capture_attention(model: nn.Module, select: Callable[[str], bool] = lambda name: True) -> Iterator[Captured]:
    """Collects, within the block, the weights (B, H, T, S) of every call of an attention in a list under its name.

    Each kind of attention computes its weights, masks and biases included, in addition to its output: outputs are the
    same bit for bit, and there is no cost outside of the block. What other threads compute is not captured. Names are
    those of `model.named_modules()`: `encoder.layers.0.self_attention`, ….
    """
    captured = Captured()
    observed = [(n, m) for n, m in model.named_modules() if isinstance(m, Attention) and select(n)]
    thread = get_ident()
    with _changing:
        for name, module in observed:
            captured[name], captured.allowed[name] = [], []
            if not isinstance(module.observer, _Observer):
                module.observer = _Observer()
            module.observer.kept[thread] = captured[name], captured.allowed[name]
    try:
        yield captured
    finally:
        with _changing:
            for _, module in observed:
                if isinstance(module.observer, _Observer):
                    module.observer.kept.pop(thread, None)
                    module.observer = module.observer if module.observer.kept else None


_changing = Lock()


class _Observer:
    """Keeps the weights of those threads that capture them: several may look at one model at the same time."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[list[Tensor], list[Tensor]]] = {}  # weights and what may attend, by thread

    @torch.no_grad()
    def __call__(self, see: Callable[[], tuple[Tensor, Tensor | None]]) -> None:
        kept = self.kept.get(get_ident())
        if kept is not None:
            weights, allowed = see()
            kept[0].append(weights)
            kept[1].append((weights.new_ones((), dtype=torch.bool) if allowed is None else allowed).expand_as(weights))
