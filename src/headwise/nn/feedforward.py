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


def activation_function(name: str) -> Callable[[Tensor], Tensor]:
    """Returns an activation function by name."""
    if name not in ACTIVATIONS:
        raise ShapeError(f"unknown activation '{name}'; choose one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


class FeedForward(nn.Module):
    """Equation 2: FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 at each position; dropout inside, as in the reference code."""

    def __init__(
        self, model_dim: int, ff_dim: int, dropout: float = 0.0, activation: str = "relu", bias: bool = True
    ) -> None:
        super().__init__()
        self.activation = activation_function(activation)
        self.inner = nn.Linear(model_dim, ff_dim, bias=bias)
        self.outer = nn.Linear(ff_dim, model_dim, bias=bias)
        self.dropout = Dropout(dropout)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            if bias:
                nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        inner = self.inner(x)  # (B, T, F)
        relu = self.activation is F.relu
        out: Tensor = self.outer(self.dropout.after_relu(inner) if relu else self.dropout(self.activation(inner)))
        return out


class GatedFeedForward(nn.Module):
    """(activation(x W_g) ⊙ x W_1) W_2 without biases: GLU variants, Shazeer 2020 (arXiv 2002.05202), as in T5 v1.1."""

    def __init__(self, model_dim: int, ff_dim: int, dropout: float = 0.0, activation: str = "gelu-tanh") -> None:
        super().__init__()
        self.activation = activation_function(activation)
        self.gate = nn.Linear(model_dim, ff_dim, bias=False)
        self.inner = nn.Linear(model_dim, ff_dim, bias=False)
        self.outer = nn.Linear(ff_dim, model_dim, bias=False)
        self.dropout = Dropout(dropout)
        for linear in (self.gate, self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        out: Tensor = self.outer(self.dropout(self.activation(self.gate(x)) * self.inner(x)))
        return out
