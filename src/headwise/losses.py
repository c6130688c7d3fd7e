"""From logits or states to a loss: always a sum and the count of targets, so that one update divides once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.errors import ShapeError

# Rows of logits held at a time by `projected_cross_entropy`: with 8,000 classes 8 MB, which stays near the cache.
_CHUNK_NUMBERS = 2_000_000


def label_smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float = 0.1, ignore: int = 0
) -> tuple[Tensor, Tensor]:
    """Cross-entropy against (1 - ε) on the target plus ε/V on every class (the paper's section 5.4, ε = 0.1).

    logits (…, V), targets (…); targets equal to `ignore` (padding) do not count. Returns (sum, count).
    """
    if logits.shape[:-1] != targets.shape:
        raise ShapeError(f"logits {tuple(logits.shape)} need targets {tuple(logits.shape[:-1])}, not {tuple(targets.shape)}")
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
    if states.shape[:-1] != targets.shape:
        raise ShapeError(f"states {tuple(states.shape)} need targets {tuple(states.shape[:-1])}, not {tuple(targets.shape)}")
    counted = (targets != ignore).flatten().nonzero().squeeze(1)
    rows = states.flatten(0, -2)
    if counted.numel() < rows.size(0):
        rows = rows[counted]
    loss: Tensor = _ProjectedLoss.apply(rows, weight, targets.flatten()[counted], smoothing)
    return loss, torch.tensor(counted.numel(), device=states.device)


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        classes = weight.size(0)
        total = torch.zeros((), dtype=torch.float64 if states.device.type == "cpu" else torch.float32, device=states.device)
        need_states, need_weight = ctx.needs_input_grad[:2]
        grad_states = torch.empty_like(states) if need_states else None
        grad_weight = torch.zeros_like(weight) if need_weight else None
        size = max(1, _CHUNK_NUMBERS // classes)
        for start in range(0, states.size(0), size):
            chunk, wanted = states[start : start + size], targets[start : start + size, None]
            logits = chunk @ weight.T  # (rows, V)
            # -log p(target) = logsumexp - logit; the mean over classes needs the mean logit only.
            norm = logits.logsumexp(dim=-1, keepdim=True)
            picked = logits.gather(-1, wanted)
            smooth = logits.mean(dim=-1, keepdim=True) if smoothing else 0.0
            total += (norm - (1.0 - smoothing) * picked - smoothing * smooth).sum(dtype=total.dtype)
            if grad_states is None and grad_weight is None:
                continue
            # d loss / d logits = softmax - smoothed target, written over the logits.
            grad = logits.sub_(norm).exp_()
            if smoothing:
                grad.sub_(smoothing / classes)
            grad.scatter_add_(-1, wanted, grad.new_full((1, 1), smoothing - 1.0).expand_as(wanted))
            if grad_states is not None:
                torch.mm(grad, weight, out=grad_states[start : start + size])
            if grad_weight is not None:
                grad_weight.addmm_(grad.T, chunk)
        ctx.save_for_backward(grad_states, grad_weight)
        return total.to(states.dtype)

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
