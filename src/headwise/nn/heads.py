"""What stands between an encoder's states and its answer: pooling, labels, masked tokens."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.nn.embedding import Embedding
from headwise.nn.feedforward import activation_function
from headwise.nn.kernels.projected_loss import projected_loss
from headwise.nn.masks import padding_mask


def pool(states: Tensor, lengths: Tensor | None = None, kind: str = "first") -> Tensor:
    """One state per row: of the first position, or the mean over the row's tokens. (B, S, D) -> (B, D)."""
    if kind == "first":
        return states[:, 0]
    if lengths is None:
        return states.mean(dim=1)
    real = padding_mask(lengths, states.size(1))[:, None].to(states.dtype)  # (B, 1, S)
    return (real @ states).squeeze(1) / lengths.clamp(min=1)[:, None]


class Pooler(nn.Module):
    """tanh(W h + b) of a pooled state: BERT's, which its labels are computed from. Others have another activation."""

    def __init__(self, model_dim: int, activation: str = "tanh") -> None:
        super().__init__()
        self.activation = torch.tanh if activation == "tanh" else activation_function(activation)
        self.dense = nn.Linear(model_dim, model_dim)
        nn.init.xavier_uniform_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)

    def forward(self, pooled: Tensor) -> Tensor:  # (B, D) -> (B, D)
        return self.activation(self.dense(pooled))


class ClassHead(nn.Module):
    """Labels: softmax(W h + b) over `classes`. As an output layer it has `logits` and `loss`."""

    def __init__(self, model_dim: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(model_dim, classes)
        # Small, so that training starts near the uniform loss ln C whatever the size of the states.
        nn.init.normal_(self.linear.weight, std=0.02)
        nn.init.zeros_(self.linear.bias)

    def logits(self, states: Tensor) -> Tensor:  # (…, D) -> (…, C)
        return cast("Tensor", self.linear(states))

    def loss(self, states: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Sums the smoothed objective and -log P(target) over rows (rows, D)."""
        states, weight = F.pad(states, (0, 1), value=1.0), torch.cat((self.linear.weight, self.linear.bias[:, None]), 1)
        return projected_loss(states, weight, targets, smoothing)


class TokenHead(nn.Module):
    """Masked tokens: softmax(E · LayerNorm(activation(W h + b)) + c), where E is the table of embeddings.

    The map before the table is computed only where a token is asked for.
    """

    def __init__(self, table: Embedding, activation: str = "gelu", epsilon: float = 1e-12) -> None:
        super().__init__()
        model_dim = table.weight.size(1)
        self.table = table
        self.activation = activation_function(activation)
        self.dense = nn.Linear(model_dim, model_dim)
        self.norm = nn.LayerNorm(model_dim, eps=epsilon)
        nn.init.xavier_uniform_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)

    def forward(self, states: Tensor) -> Tensor:  # (…, D) -> (…, D)
        return cast("Tensor", self.norm(self.activation(self.dense(states))))

    def logits(self, states: Tensor) -> Tensor:  # (…, D) -> (…, V)
        return self.table.logits(self(states))

    def loss(self, states: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Sums the smoothed objective and -log P(target) over rows (rows, D)."""
        return self.table.loss(self(states), targets, smoothing)
