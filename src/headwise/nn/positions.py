"""Positional encodings. Attention alone ignores the order: without these, permuting the input permutes the output."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.errors import ShapeError


def sinusoidal_positions(length: int, model_dim: int, base: float = 10000.0) -> Tensor:
    """Section 3.5: PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i+1) = cos(pos / base^(2i/D)).

    Each pair of columns rotates at its own speed, like the hand of a clock, so PE(pos + k) is PE(pos) rotated by an
    angle that depends on k alone: a linear map.
    """
    if model_dim % 2:
        raise ShapeError(f"sinusoidal positions need an even model_dim (sine/cosine pairs), not {model_dim}")
    if torch.empty(0).is_meta:  # where nothing is computed but shapes, by Python that takes seconds to import
        return torch.empty(length, model_dim)
    # The angles are float64: at position 10,000 float32 would already be wrong in the fourth decimal place.
    position = torch.arange(length, dtype=torch.float64)[:, None]
    wavelength = base ** (torch.arange(0, model_dim, 2, dtype=torch.float64) / model_dim)  # (D/2,)
    angle = position / wavelength  # (length, D/2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()  # (length, D)


class SinusoidalPositions(nn.Module):
    """Adds the fixed sine/cosine encoding; the table grows automatically for longer inputs."""

    table: Tensor

    def __init__(self, model_dim: int, base: float = 10000.0, initial_length: int = 512) -> None:
        super().__init__()
        self.model_dim, self.base = model_dim, base
        self.register_buffer("table", sinusoidal_positions(initial_length, model_dim, base), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:  # (B, T, D) -> (B, T, D)
        end = start + x.size(1)
        if end > self.table.size(0):
            longer = sinusoidal_positions(max(end, 2 * self.table.size(0)), self.model_dim, self.base)
            self.table = longer.to(self.table)
        return x + self.table[start:end]


class LearnedPositions(nn.Module):
    """Adds a trained vector per position (GPT-2, BERT), for at most `max_length` positions."""

    def __init__(self, model_dim: int, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.weight = nn.Parameter(torch.empty(max_length, model_dim))
        # As small as the tied embeddings before their scaling by √D, so that at first the token outweighs its position.
        nn.init.normal_(self.weight, std=model_dim**-0.5)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:  # (B, T, D) -> (B, T, D)
        end = start + x.size(1)
        if end > self.max_length:
            raise ShapeError(
                f"an input of {end} tokens is longer than the {self.max_length} learned positions; "
                "shorten it, or train with a larger max_length or with sinusoidal positions"
            )
        return x + self.weight[start:end]


class NoPositions(nn.Module):
    """Adds nothing: the model ignores the order, or attention encodes it in another way (rotary)."""

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        return x


class NoRotation(nn.Module):
    """Leaves queries and keys as they are."""

    rotates = False

    def rotate(self, x: Tensor, start: int = 0) -> Tensor:
        return x


class RotaryPositions(nn.Module):
    """Rotates each pair of coordinates of queries and keys by position · speed (Su et al. 2021, arXiv 2104.09864).

    The dot product of two rotated vectors depends only on the difference of their positions.
    """

    rotates = True
    angles: Tensor

    def __init__(self, head_dim: int, base: float = 10000.0) -> None:
        super().__init__()
        if head_dim % 2:
            raise ShapeError(f"rotary positions need an even head size (they rotate pairs), not {head_dim}")
        speed = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        self.register_buffer("angles", speed.float(), persistent=False)  # (K/2,)

    def rotate(self, x: Tensor, start: int = 0) -> Tensor:  # (B, H, T, K) -> (B, H, T, K)
        position = torch.arange(start, start + x.size(-2), device=x.device, dtype=torch.float32)
        angle = position[:, None] * self.angles.float()  # (T, K/2)
        sine, cosine = angle.sin().to(x.dtype), angle.cos().to(x.dtype)
        left, right = x.chunk(2, dim=-1)  # pairs across halves, as in GPT-NeoX and LLaMA
        return torch.cat((left * cosine - right * sine, right * cosine + left * sine), dim=-1)
