"""Adaptive embedding and softmax for large vocabularies: wide vectors for frequent words, narrow ones for rare words.

As input it is the adaptive embedding of Baevski & Auli 2019 (arXiv 1809.10853), as output the adaptive softmax of Grave
et al. 2017 (arXiv 1609.04309), and one object can be both. With WikiText-2's 33,000 words the output takes a tenth of
the time of a full softmax (docs/decisions/0011-language-models.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.embedding import explain_ids
from headwise.nn.kernels.projected_loss import projected_loss

_NARROWER = 4  # each cluster's vectors have a quarter of the previous cluster's width, as in both papers


class AdaptiveEmbedding(nn.Module):
    """An embedding whose ids are sorted by frequency: ids below cutoffs[0] are the head, each cut-off starts a cluster.

    P(word) is the head's softmax for a word of the head; for any other word, the head's probability of its cluster
    times the softmax within the cluster. `forward`, `logits` and `loss` are those of `Embedding`.
    """

    def __init__(self, vocab: int, model_dim: int, cutoffs: Sequence[int], scaled: bool = True) -> None:
        super().__init__()
        edges = (0, *cutoffs, vocab)
        if not cutoffs or any(low >= high for low, high in pairwise(edges)):
            raise ShapeError(
                f"cutoffs must be increasing and between 1 and the vocabulary size ({vocab}), not {list(cutoffs)}"
            )
        self.vocab, self.edges, self.scale = vocab, edges, math.sqrt(model_dim) if scaled else 1.0
        widths = [max(1, model_dim // _NARROWER**number) for number in range(len(edges) - 1)]
        sizes = [high - low for low, high in pairwise(edges)]
        self.tables = nn.ParameterList(torch.empty(size, width) for size, width in zip(sizes, widths, strict=True))
        self.projections = nn.ParameterList(torch.empty(width, model_dim) for width in widths[1:])
        self.clusters = nn.Parameter(torch.empty(len(cutoffs), model_dim))
        # As for Embedding: inputs times √D have variance 1, and so do the logits of a normalised state.
        for table in self.tables:
            nn.init.normal_(table, std=table.size(1) ** -0.5)
        for matrix in (*self.projections, self.clusters):
            nn.init.normal_(matrix, std=model_dim**-0.5)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) -> (B, T, D)
        flat = ids.flatten()
        places, vectors = [], []
        for number, (low, high) in enumerate(pairwise(self.edges)):
            place = ((flat >= low) & (flat < high)).nonzero().squeeze(1)
            narrow = F.embedding(flat[place] - low, self.tables[number])
            places.append(place)
            vectors.append(narrow if number == 0 else narrow @ self.projections[number - 1])
        order = torch.cat(places)
        if order.numel() < flat.numel():
            raise explain_ids(ids, self.vocab)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel(), device=order.device)
        return torch.cat(vectors)[back].mul(self.scale).view(*ids.shape, -1)

    def logits(self, states: Tensor) -> Tensor:
        """Computes (…, D) -> (…, V): log-probabilities, which are logits that are already normalised."""
        head = F.linear(states, self._head()).log_softmax(dim=-1)
        parts = [head[..., : self.edges[1]]]
        for number, projection in enumerate(self.projections):
            within = F.linear(F.linear(states, projection), self.tables[number + 1]).log_softmax(dim=-1)
            parts.append(within + head[..., self.edges[1] + number, None])
        return torch.cat(parts, dim=-1)

    def loss(self, states: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Sums the objective and -log P(target) over rows (rows, D); each row is projected to its own cluster only."""
        if smoothing:
            raise ShapeError("the adaptive softmax does not support label smoothing: set training.label_smoothing = 0")
        choices = targets.clone()
        total = states.new_zeros(())
        for number, (low, high) in enumerate(pairwise(self.edges[1:])):
            place = ((targets >= low) & (targets < high)).nonzero().squeeze(1)
            choices[place] = self.edges[1] + number
            narrow = F.linear(states[place], self.projections[number])
            total = total + projected_loss(narrow, self.tables[number + 1], targets[place] - low)[0]
        total = total + projected_loss(states, self._head(), choices)[0]
        return total, total.detach()

    def _head(self) -> Tensor:
        """Returns the vectors of the frequent words, then one per cluster: (cutoffs[0] + clusters, D)."""
        return torch.cat((self.tables[0], self.clusters))
