"""Output projection and loss in chunks of rows, so that the full logits are never held in memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.nn.kernels.precision import in_float32

# Logits held at a time: with 8,000 classes 250 rows, 8 MB, which about fits the cache.
_CHUNK_NUMBERS = 2_000_000


@in_float32
def projected_loss(states: Tensor, weight: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """Sums the smoothed and the plain cross-entropy of softmax(states @ weightᵀ) over rows.

    states (rows, D), weight (V, D), targets (rows,). The second sum has no gradient. Each chunk of rows is projected,
    its loss computed, its gradient written over it and multiplied back at once, while the logits are still in the
    cache.
    """
    total: Tensor
    log_loss: Tensor
    total, log_loss = _ProjectedLoss.apply(states, weight, targets, smoothing)  # type: ignore[no-untyped-call]
    return total, log_loss


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        classes = weight.size(0)
        # float64 where it costs nothing, so that the sum does not depend on the number of chunks.
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
            # d loss / d logits = softmax - (1 - ε)·target - ε/V. The first term is exps / sums, where the division is
            # done on the narrower matrix; the second has one class per row; the third is the same for all rows.
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
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        grad_states, grad_weight = ctx.saved_tensors
        scale = grads[0]
        return (
            None if grad_states is None else grad_states * scale,
            None if grad_weight is None else grad_weight * scale,
            None,
            None,
        )
