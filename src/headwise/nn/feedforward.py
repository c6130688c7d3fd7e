"""The position-wise feed-forward network: the paper's section 3.3."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.dropout import Dropout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),  # GPT-2's
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """Equation 2: FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 at each position; dropout inside, as in the reference code."""

    def __init__(self, model_dim: int, ff_dim: int, dropout: float = 0.0, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ShapeError(f"unknown activation '{activation}'; there are {', '.join(ACTIVATIONS)}")
        self.inner = nn.Linear(model_dim, ff_dim)
        self.outer = nn.Linear(ff_dim, model_dim)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        inner = self.inner(x)  # (B, T, F)
        relu = self.activation is F.relu
        out: Tensor = self.outer(self.dropout.after_relu(inner) if relu else self.dropout(self.activation(inner)))
        return out
