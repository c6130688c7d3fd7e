"""Input handling that all models share: checks, masks and positions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn import (
    AdaptiveEmbedding,
    Embedding,
    LearnedPositions,
    NoPositions,
    SinusoidalPositions,
    padding_mask,
)
from headwise.text.vocabulary import EOS


def build_positions(kind: str, model_dim: int, max_length: int) -> nn.Module:
    """Builds the module that adds positions to embeddings, by name."""
    if kind == "sinusoidal":
        return SinusoidalPositions(model_dim)
    if kind == "learned":
        return LearnedPositions(model_dim, max_length)
    return NoPositions()


def build_table(
    vocab: int, model_dim: int, cutoffs: Sequence[int] = (), *, scaled: bool = True, absent: int = 0
) -> Embedding | AdaptiveEmbedding:
    """Builds the embedding table, for input or output: of one width, or narrower from each cut-off on."""
    if cutoffs and absent:
        raise ShapeError("cutoffs are for a vocabulary that has all special tokens: set absent = 0")
    if cutoffs:
        return AdaptiveEmbedding(vocab, model_dim, cutoffs, scaled)
    return Embedding(vocab, model_dim, scaled, absent=absent)


def check_ids(name: str, ids: Tensor, lengths: Tensor | None) -> None:
    """Checks shapes and lengths but not the ids themselves, which would slow down every step."""
    if ids.dim() != 2:
        raise ShapeError(f"{name} ids must be (batch, length), not shape {tuple(ids.shape)}")
    if lengths is None or torch.compiler.is_compiling():
        return
    if lengths.dim() != 1 or lengths.size(0) != ids.size(0):
        raise ShapeError(f"{name} lengths must be ({ids.size(0)},), one per row, not shape {tuple(lengths.shape)}")
    if (
        lengths.device.type == "cpu"
        and lengths.numel()
        and not 0 <= int(lengths.min()) <= int(lengths.max()) <= ids.size(1)
    ):
        raise ShapeError(
            f"{name} lengths must be 0…{ids.size(1)}, but range from {int(lengths.min())} to {int(lengths.max())}"
        )


def allowed_by_lengths(lengths: Tensor | None, max_length: int) -> Tensor | None:
    """Computes the padding mask (B,) -> (B, 1, 1, max_length), or None if every query may see every position.

    Without padding there is nothing to hide, and attention is faster without a mask. On a GPU this is not checked,
    because it would have to wait for the device.
    """
    if lengths is None:
        return None
    on_cpu = lengths.device.type == "cpu" and not torch.compiler.is_compiling()
    if on_cpu and lengths.numel() and int(lengths.min()) == max_length:
        return None
    return padding_mask(lengths, max_length)[:, None, None, :]


def segments_of(ids: Tensor, most: int) -> Tensor:
    """Computes which text of its input each token belongs to, from 0: (B, S) -> (B, S). An end of sentence ends one."""
    ends = (ids == EOS).long()
    return (ends.cumsum(dim=1) - ends).clamp(max=most - 1)
