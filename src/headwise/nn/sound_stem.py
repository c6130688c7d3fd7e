"""Sound as a sequence: two convolutions over log-mel features, and the sinusoids of Whisper's encoder."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError


class SoundStem(nn.Module):
    """Two convolutions of width 3 (Whisper, section 2.2); the second has stride 2: two frames become one position."""

    def __init__(self, mels: int, model_dim: int) -> None:
        super().__init__()
        self.mels = mels
        self.first = nn.Conv1d(mels, model_dim, 3, padding=1)
        self.second = nn.Conv1d(model_dim, model_dim, 3, padding=1, stride=2)
        for convolution in (self.first, self.second):
            nn.init.kaiming_normal_(convolution.weight)
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]

    def forward(self, features: Tensor) -> Tensor:  # (B, frames, mels) -> (B, frames / 2, D)
        if features.dim() != 3 or features.size(2) != self.mels:
            raise ShapeError(f"features must be (batch, frames, {self.mels}), not shape {tuple(features.shape)}")
        x = features.transpose(1, 2)  # (B, mels, frames)
        x = F.gelu(self.second(F.gelu(self.first(x))))
        return x.transpose(1, 2)


class SoundPositions(nn.Module):
    """Adds sinusoids in halves [sin | cos], whose wavelengths go from 2π to 10,000 · 2π in equal ratios."""

    table: Tensor

    def __init__(self, model_dim: int, length: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids_in_halves(length, model_dim), persistent=False)

    def forward(self, x: Tensor) -> Tensor:  # (B, S, D) -> (B, S, D)
        if x.size(1) > self.table.size(0):
            raise ShapeError(
                f"a sound of {x.size(1)} positions is longer than the model's {self.table.size(0)}; cut it"
            )
        return x + self.table[: x.size(1)]


def sinusoids_in_halves(length: int, model_dim: int, longest: float = 10000.0) -> Tensor:
    """Returns (length, D). Unlike the paper's, the last wavelength is reached: the exponent is i / (D/2 - 1)."""
    if model_dim % 2 or model_dim < 4:
        raise ShapeError(f"sinusoids in halves need an even model_dim of at least 4, not {model_dim}")
    steps = torch.arange(model_dim // 2, dtype=torch.float64)
    speed = torch.exp(-math.log(longest) / (model_dim // 2 - 1) * steps)  # (D/2,)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * speed  # (length, D/2)
    return torch.cat((angle.sin(), angle.cos()), dim=1).float()
