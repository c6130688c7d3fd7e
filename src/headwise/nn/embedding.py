"""Token ids to vectors: the paper's section 3.4."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.kernels.projected_loss import projected_loss


class Embedding(nn.Module):
    """A table of vectors, multiplied by √D (`scaled`); as output layer the same table gives `logits` and `loss`."""

    def __init__(self, vocab: int, model_dim: int, scaled: bool = True) -> None:
        super().__init__()
        self.vocab, self.scale = vocab, math.sqrt(model_dim) if scaled else 1.0
        self.weight = nn.Parameter(torch.empty(vocab, model_dim))
        # Deviation 1/√D serves both uses of a tied table: times √D the embeddings have variance 1, like the positions
        # that are added; and a normalised state h (|h|² = D) gives logits h·E of variance 1, so training starts near
        # the uniform loss ln V. (Xavier would give logits of variance D/V·2, PyTorch's N(0, 1) of variance D.)
        nn.init.normal_(self.weight, std=model_dim**-0.5)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) -> (B, T, D)
        if torch.compiler.is_compiling():
            return F.embedding(ids, self.weight) * self.scale
        try:
            return F.embedding(ids, self.weight) * self.scale
        except (IndexError, RuntimeError) as error:
            raise explain_ids(ids, self.vocab) from error

    def logits(self, states: Tensor) -> Tensor:  # (…, D) -> (…, V)
        return F.linear(states, self.weight)

    def loss(self, states: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Sums over rows (rows, D) of the smoothed objective and of -log P(target)."""
        return projected_loss(states, self.weight, targets, smoothing)


def explain_ids(ids: Tensor, vocab: int) -> ShapeError:
    """Why ids cannot be looked up."""
    if ids.is_floating_point() or ids.dtype == torch.bool:
        return ShapeError(f"token ids must be integers, not {ids.dtype}")
    low, high = int(ids.min()), int(ids.max())
    return ShapeError(f"token ids must be 0…{vocab - 1} (the vocabulary), but there are ids from {low} to {high}")
