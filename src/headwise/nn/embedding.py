"""Embeddings, from token ids to vectors: the paper's section 3.4."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.kernels.projected_loss import projected_loss

# The logit of a token that the table has no vector for. Finite, so that sums over the vocabulary stay finite too.
NEVER = -1e4


class Embedding(nn.Module):
    """A table of vectors, multiplied by √D (`scaled`); as output layer the same table gives `logits` and `loss`.

    The first `absent` ids have no vector: published models do not know all of our special tokens, and a made-up vector
    would take probability from real ones. `bias` adds a trained number per token to the logits.
    """

    bias: Tensor | None

    def __init__(self, vocab: int, model_dim: int, scaled: bool = True, *, absent: int = 0, bias: bool = False) -> None:
        super().__init__()
        if not 0 <= absent < vocab:
            raise ShapeError(f"{absent} of {vocab} tokens cannot be without a vector")
        self.vocab, self.absent, self.scale = vocab, absent, math.sqrt(model_dim) if scaled else 1.0
        self.weight = nn.Parameter(torch.empty(vocab - absent, model_dim))
        self.register_parameter("bias", nn.Parameter(torch.zeros(vocab - absent)) if bias else None)
        # A standard deviation of 1/√D suits both uses of a tied table: times √D, embeddings have variance 1, like the
        # positions that are added; and a normalised state h (|h|² = D) gives logits h·E of variance 1, so training
        # starts near the uniform loss ln V. (Xavier would give logits of variance D/V·2, PyTorch's N(0, 1) D.)
        nn.init.normal_(self.weight, std=model_dim**-0.5)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) -> (B, T, D)
        if self.absent:
            ids = self._present(ids)
        if torch.compiler.is_compiling():
            return F.embedding(ids, self.weight) * self.scale
        try:
            return F.embedding(ids, self.weight) * self.scale
        except (IndexError, RuntimeError) as error:
            if "allocate" in str(error):
                raise  # the ids are fine, but there is no memory for their vectors
            raise explain_ids(ids, self.vocab) from error

    def _present(self, ids: Tensor) -> Tensor:
        """Rows of the table. Of ids without a vector only padding may occur, which nobody looks at."""
        if not torch.compiler.is_compiling() and ids.device.type == "cpu" and self.absent > 1:
            lacking = ids[(ids > 0) & (ids < self.absent)]
            if lacking.numel():
                raise ShapeError(f"the model has no vector for token {int(lacking[0])}, such as a word that it lacks")
        return (ids - self.absent).clamp_min(0)

    def logits(self, states: Tensor) -> Tensor:  # (…, D) -> (…, V)
        return with_absent(F.linear(states, self.weight, self.bias), self.absent)

    def loss(self, states: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Sums the smoothed objective and -log P(target) over rows (rows, D)."""
        weight: Tensor = self.weight
        targets = targets - self.absent if self.absent else targets
        if self.bias is not None:  # the bias is the weight of one more coordinate, which is 1
            states = F.pad(states, (0, 1), value=1.0)
            weight = torch.cat((weight, self.bias[:, None]), dim=1)
        return projected_loss(states, weight, targets, smoothing)


def with_absent(logits: Tensor, absent: int) -> Tensor:
    """(…, V - absent) -> (…, V)."""
    return F.pad(logits, (absent, 0), value=NEVER) if absent else logits


def explain_ids(ids: Tensor, vocab: int) -> ShapeError:
    """Explains why ids cannot be looked up, as an error to raise."""
    if ids.is_floating_point() or ids.dtype == torch.bool:
        return ShapeError(f"token ids must be integers, not {ids.dtype}")
    low, high = int(ids.min()), int(ids.max())
    return ShapeError(f"token ids must be 0…{vocab - 1} (the vocabulary), but they range from {low} to {high}")
