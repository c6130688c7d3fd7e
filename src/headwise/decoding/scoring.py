"""Scores given targets: one masked pass, no search."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headwise.cancellation import check_cancelled
from headwise.data.batch import pad
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import batches
from headwise.errors import UsageError
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import BOS, EOS


@torch.inference_mode()
def score_targets(
    model: nn.Module,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    options: SearchOptions | None = None,
) -> list[tuple[float, ...]]:
    """Computes the log-probabilities of each target's tokens and of its end of sentence, in input order."""
    if len(sources) != len(targets):
        raise UsageError(f"there are {len(sources)} sources but {len(targets)} targets; give one target per source")
    device = next(model.parameters()).device
    found: list[tuple[float, ...]] = [()] * len(sources)
    lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    for places in batches(lengths, options or SearchOptions()):
        check_cancelled()
        source, target = [sources[i] for i in places], [targets[i] for i in places]
        log_probs = _score_batch(model, source, target, device).tolist()
        for row, place in enumerate(places):
            found[place] = tuple(log_probs[row][: len(targets[place]) + 1])
    return found


def _score_batch(
    model: nn.Module, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], device: torch.device
) -> Tensor:  # (B, T)
    ids = pad(Ragged.of(sources), end=EOS).to(device)
    source_lengths = torch.tensor([len(source) + 1 for source in sources], device=device)
    inputs, outputs = pad(Ragged.of(targets), start=BOS).to(device), pad(Ragged.of(targets), end=EOS).to(device)
    logits: Tensor = model(ids, inputs, source_lengths)  # (B, T, V)
    picked = logits.gather(-1, outputs[:, :, None]).squeeze(-1)
    return picked - logits.logsumexp(dim=-1)
