"""Dropout: the paper's section 5.4."""

from __future__ import annotations

from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.kernels.dropout import dropout, dropped_relu, dropped_sum


class Dropout(nn.Module):
    """Zeroes elements at random in training mode; does nothing in evaluation mode."""

    def __init__(self, rate: float = 0.0) -> None:
        super().__init__()
        if not 0.0 <= rate < 1.0:
            raise ShapeError(f"a dropout rate must be at least 0 and less than 1, not {rate}")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.active_rate)

    def added(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns x + dropout(y)."""
        return dropped_sum(x, y, self.active_rate)

    def after_relu(self, x: Tensor) -> Tensor:
        """Returns dropout(relu(x))."""
        return dropped_relu(x, self.active_rate)

    @property
    def active_rate(self) -> float:
        return self.rate if self.training else 0.0

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
