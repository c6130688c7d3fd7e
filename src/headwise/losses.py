"""From logits or states to a loss: always a sum and the count of targets, so that one update divides once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.data.batch import Batch, LanguageBatch
from headwise.errors import ShapeError
from headwise.models.registry import Model

# Rows of logits held at a time by `projected_cross_entropy`: with 8,000 classes 8 MB, which stays near the cache.
_CHUNK_NUMBERS = 2_000_000


@dataclass(frozen=True)
class BatchLoss:
    """The objective's sum, the plain log-loss' sum (for perplexity, no gradient), and how many targets there are."""

    total: Tensor
    log_loss: Tensor
    count: int


def batch_loss(model: Model, batch: Batch | LanguageBatch, smoothing: float = 0.0, pad: int = 0) -> BatchLoss:
    """A batch through a model that has `states` and an output matrix."""
    states = model.states(*batch.inputs)
    total, log_loss, count = _project_and_sum(states, model.output.weight, batch.targets, smoothing, pad)
    return BatchLoss(total, log_loss, count)


def label_smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float = 0.1, ignore: int = 0
) -> tuple[Tensor, Tensor]:
    """Cross-entropy against (1 - ε) on the target plus ε/V on every class (the paper's section 5.4, ε = 0.1).

    logits (…, V), targets (…); targets equal to `ignore` (padding) do not count. Returns (sum, count).
    """
    if logits.shape[:-1] != targets.shape:
        raise ShapeError(
            f"logits {tuple(logits.shape)} need targets {tuple(logits.shape[:-1])}, not {tuple(targets.shape)}"
        )
    log_probs = logits.log_softmax(dim=-1)
    counted = targets != ignore
    picked = log_probs.gather(-1, targets.masked_fill(~counted, 0)[..., None]).squeeze(-1)
    losses = -(1.0 - smoothing) * picked - smoothing * log_probs.mean(dim=-1)
    return losses.masked_fill(~counted, 0.0).sum(), counted.sum()


def projected_cross_entropy(
    states: Tensor, weight: Tensor, targets: Tensor, smoothing: float = 0.1, ignore: int = 0
) -> tuple[Tensor, Tensor]:
    """`label_smoothed_cross_entropy(states @ weightᵀ, …)` without ever holding all the logits.

    states (…, D), weight (V, D). Padding is not even projected. A chunk of rows is projected, its loss taken, its
    gradient written over it and multiplied back at once, so the logits are touched while they are still in the cache.
    """
    total, _, count = _project_and_sum(states, weight, targets, smoothing, ignore)
    return total, torch.tensor(count, device=states.device)


def _project_and_sum(
    states: Tensor, weight: Tensor, targets: Tensor, smoothing: float, ignore: int
) -> tuple[Tensor, Tensor, int]:
    if states.shape[:-1] != targets.shape:
        raise ShapeError(
            f"states {tuple(states.shape)} need targets {tuple(states.shape[:-1])}, not {tuple(targets.shape)}"
        )
    rows, wanted = states.flatten(0, -2), targets.flatten()
    counted = (wanted != ignore).nonzero().squeeze(1)
    if counted.numel() < wanted.numel():
        rows, wanted = rows[counted], wanted[counted]
    total, log_loss = _ProjectedLoss.apply(rows, weight, wanted, smoothing)  # type: ignore[no-untyped-call]
    return total, log_loss, counted.numel()


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        classes = weight.size(0)
        # float64 where it is free: the sum of many chunks then does not depend on how many there are.
        total = torch.zeros(
            2, dtype=torch.float64 if states.device.type == "cpu" else torch.float32, device=states.device
        )
        need_states, need_weight = ctx.needs_input_grad[:2]
        grad_states = torch.empty_like(states) if need_states else None
        grad_weight = torch.zeros_like(weight) if need_weight else None
        mean_weight = weight.mean(dim=0)  # the mean over classes of h·W is h·(mean of W)
        size = max(1, _CHUNK_NUMBERS // classes)
        for start in range(0, states.size(0), size):
            chunk, wanted = states[start : start + size], targets[start : start + size]
            logits = chunk @ weight.T  # (rows, V), and from here on overwritten in place
            peak = logits.amax(dim=-1)
            picked = logits.gather(-1, wanted[:, None]).squeeze(1)
            exps = logits.sub_(peak[:, None]).exp_()
            sums = exps.sum(dim=-1)
            norm = sums.log() + peak  # logsumexp, (rows,)
            log_loss = (norm - picked).sum(dtype=total.dtype)
            spread = (norm - chunk @ mean_weight).sum(dtype=total.dtype)
            total += torch.stack(((1.0 - smoothing) * log_loss + smoothing * spread, log_loss))
            # d loss / d logits = softmax - (1 - ε)·target - ε/V. The first term is exps / sums: the division is done on
            # the narrow side; the second touches one class a row; the third is the same vector for all rows.
            if grad_states is not None:
                grad = torch.mm(exps, weight, out=grad_states[start : start + size]).div_(sums[:, None])
                grad.sub_(weight[wanted], alpha=1.0 - smoothing).sub_(mean_weight, alpha=smoothing)
            if grad_weight is not None:
                grad_weight.addmm_(exps.T, chunk / sums[:, None])
                grad_weight.index_add_(0, wanted, chunk, alpha=smoothing - 1.0)
                grad_weight.sub_(chunk.sum(dim=0), alpha=smoothing / classes)
        ctx.save_for_backward(grad_states, grad_weight)
        loss, log_loss = total.to(states.dtype).unbind()
        ctx.mark_non_differentiable(log_loss)
        return loss, log_loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        grad_states, grad_weight = ctx.saved_tensors
        scale = grads[0]
        return (
            None if grad_states is None else grad_states * scale,
            None if grad_weight is None else grad_weight * scale,
            None,
            None,
        )
