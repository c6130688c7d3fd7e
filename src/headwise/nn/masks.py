"""Who may attend to whom: boolean, True = may attend."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.errors import ShapeError


def causal_mask(length: int, *, past: int = 0, device: torch.device | str | None = None) -> Tensor:
    """Row t may see columns 0…t: True on and below the diagonal.

    With `past`, the rows are the `length` newest of past + length tokens, as when decoding goes on from a cache.
    """
    if length < 0 or past < 0:
        raise ShapeError(f"a causal mask needs lengths of at least 0, not {length} after {past}")
    return torch.ones(length, past + length, dtype=torch.bool, device=device).tril(past)  # (T, past + T)


def padding_mask(lengths: Tensor, max_length: int) -> Tensor:
    """True where there is a token: row b has `lengths[b]` of them, then padding."""
    if lengths.dim() != 1:
        raise ShapeError(f"lengths must have one axis (batch), not shape {tuple(lengths.shape)}")
    return torch.arange(max_length, device=lengths.device) < lengths[:, None]  # (B, max_length)
