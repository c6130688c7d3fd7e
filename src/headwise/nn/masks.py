"""Attention masks: boolean, True = may attend."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.errors import ShapeError


def causal_mask(length: int, *, past: int = 0, device: torch.device | str | None = None) -> Tensor:
    """Returns a mask in which row t may attend to columns 0…t: True on and below the diagonal.

    With `past`, the rows are the `length` newest of past + length tokens, as when decoding continues from a cache.
    """
    if length < 0 or past < 0:
        raise ShapeError(f"the lengths of a causal mask must not be negative, but length is {length} and past {past}")
    return torch.ones(length, past + length, dtype=torch.bool, device=device).tril(past)  # (T, past + T)


def padding_mask(lengths: Tensor, max_length: int) -> Tensor:
    """Returns a mask that is True where there is a token: row b has `lengths[b]` of them, then padding."""
    if lengths.dim() != 1:
        raise ShapeError(f"lengths must have one axis (batch), not shape {tuple(lengths.shape)}")
    return torch.arange(max_length, device=lengths.device) < lengths[:, None]  # (B, max_length)
