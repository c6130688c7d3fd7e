"""Where a token stands. Attention itself does not know: without these, permuting the input permutes the output."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.errors import ShapeError


def sinusoidal_positions(length: int, model_dim: int, base: float = 10000.0) -> Tensor:
    """The paper's section 3.5: PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i+1) = cos(pos / base^(2i/D)).

    Each pair of columns is a hand of a clock with its own speed, so PE(pos + k) is PE(pos) turned by an angle that
    depends on k alone: a linear map.
    """
    if model_dim % 2:
        raise ShapeError(f"sinusoidal positions come in sine/cosine pairs: the width must be even, not {model_dim}")
    # float64 for the angles: at position 10,000 float32 would already be wrong in the fourth decimal.
    position = torch.arange(length, dtype=torch.float64)[:, None]
    wavelength = base ** (torch.arange(0, model_dim, 2, dtype=torch.float64) / model_dim)  # (D/2,)
    angle = position / wavelength  # (length, D/2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()  # (length, D)


class SinusoidalPositions(nn.Module):
    """Adds the fixed sine/cosine code; the table grows by itself when a longer input comes."""

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
    """Adds a trained vector per position (GPT-2, BERT); there are `max_length` of them and no more."""

    def __init__(self, model_dim: int, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.weight = nn.Parameter(torch.empty(max_length, model_dim))
        # As small as the tied embeddings before their scaling by sqrt(D): the token, not its place, speaks first.
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
    """Adds nothing: the order is unknown, or attention is told of it in another way (rotary)."""

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        return x


class NoRotation(nn.Module):
    """Leaves queries and keys as they are."""

    rotates = False

    def rotate(self, x: Tensor, start: int = 0) -> Tensor:
        return x


class RotaryPositions(nn.Module):
    """Turns each pair of coordinates of queries and keys by position · speed (Su et al. 2021, arXiv 2104.09864).

    A dot product of two turned vectors depends on the difference of their positions only.
    """

    rotates = True
    angles: Tensor

    def __init__(self, head_dim: int, base: float = 10000.0) -> None:
        super().__init__()
        if head_dim % 2:
            raise ShapeError(f"rotary positions turn pairs: the head size must be even, not {head_dim}")
        speed = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        self.register_buffer("angles", speed.float(), persistent=False)  # (K/2,)

    def rotate(self, x: Tensor, start: int = 0) -> Tensor:  # (B, H, T, K) -> (B, H, T, K)
        position = torch.arange(start, start + x.size(-2), device=x.device, dtype=torch.float32)
        angle = position[:, None] * self.angles.float()  # (T, K/2)
        sine, cosine = angle.sin().to(x.dtype), angle.cos().to(x.dtype)
        left, right = x.chunk(2, dim=-1)  # halves, as GPT-NeoX and LLaMA pair them
        return torch.cat((left * cosine - right * sine, right * cosine + left * sine), dim=-1)
