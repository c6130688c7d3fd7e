"""Exponential moving average of the weights, which is what is validated and saved where the recipe asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class MovingAverage:
    """Computes average ← decay · average + (1 - decay) · weights after each update, with a smaller decay at first."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.names = [name for name, _ in model.named_parameters()]
        self.parameters = list(model.parameters())
        self.averages = [parameter.detach().clone() for parameter in self.parameters]

    @torch.no_grad()
    def update(self, step: int) -> None:
        # Early on the random initial weights would dominate: (1 + step) / (10 + step) forgets them, as in TensorFlow.
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self.averages, list(self.parameters), 1.0 - decay)

    def tensors(self) -> dict[str, Tensor]:
        return dict(zip(self.names, self.averages, strict=True))

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor]) -> None:
        for name, average in zip(self.names, self.averages, strict=True):
            average.copy_(tensors[name])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Puts the averaged weights into the model for the block, and its own back afterwards, bit for bit."""
        own = [parameter.detach().clone() for parameter in self.parameters]
        self._set(self.averages)
        try:
            yield
        finally:
            self._set(own)

    @torch.no_grad()
    def _set(self, values: list[Tensor]) -> None:
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.copy_(value)
