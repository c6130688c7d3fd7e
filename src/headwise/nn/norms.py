"""Norms other than LayerNorm."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.nn.kernels.dropout import runs_here
from headwise.nn.kernels.rms_norm import rms_norm


class RMSNorm(nn.Module):
    """w x / √(mean(x²) + ε): a LayerNorm without mean and bias (Zhang & Sennrich 2019, arXiv 1910.07467), as in T5."""

    def __init__(self, model_dim: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(model_dim))

    def forward(self, x: Tensor) -> Tensor:  # (…, D) -> (…, D)
        x = x.to(self.weight.dtype)  # mixed precision: squares are summed in float32
        if torch.is_grad_enabled() and runs_here(x):
            return rms_norm(x, self.weight, self.epsilon)
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)
