"""One update: forward, backward, clip, step. The loss is a sum and a count, and the division happens once."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.data.batch import Batch, LanguageBatch
from headwise.losses import batch_loss
from headwise.models.registry import Model
from headwise.training.optimizers import set_rate


@dataclass(frozen=True)
class Update:
    """What an update was: means a target token, and whether it was taken."""

    loss: float  # the objective, with label smoothing
    log_loss: float  # without: exp of it is the perplexity
    tokens: int
    positions: int  # of the target, with padding
    norm: float  # of the gradient, before clipping
    rate: float
    skipped: bool


class Updater:
    """update = updater(batch, rate). `accumulate` micro-batches make the same update as one, in less memory."""

    def __init__(
        self,
        model: Model,
        optimizer: torch.optim.Optimizer,
        *,
        smoothing: float = 0.0,
        clip_norm: float = 0.0,
        accumulate: int = 1,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self.smoothing, self.clip_norm, self.accumulate, self.autocast = smoothing, clip_norm, accumulate, autocast
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.device = self.parameters[0].device

    def __call__(self, batch: Batch | LanguageBatch, rate: float) -> Update:
        parts = [batch] if self.accumulate == 1 else batch.split(self.accumulate)
        loss = log_loss = 0.0
        for part in parts:
            part_loss, part_log_loss = self._backward(part, batch.tokens)
            loss, log_loss = loss + part_loss, log_loss + part_log_loss
        norm = self._gradient_norm()
        skipped = not (math.isfinite(loss) and math.isfinite(norm))
        if not skipped:
            self._clip(norm)
            set_rate(self.optimizer, rate)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        tokens = max(batch.tokens, 1)
        return Update(loss / tokens, log_loss / tokens, batch.tokens, batch.targets.numel(), norm, rate, skipped)

    def _backward(self, part: Batch | LanguageBatch, tokens: int) -> tuple[float, float]:
        with self._precision():
            sums = batch_loss(self.model, part.to(self.device), self.smoothing)
        (sums.total / tokens).backward()  # type: ignore[no-untyped-call]
        return sums.total.item(), sums.log_loss.item()

    def _precision(self) -> AbstractContextManager[object]:
        return nullcontext() if self.autocast is None else torch.autocast(self.device.type, self.autocast)

    def _gradient_norm(self) -> float:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm: Tensor = torch.nn.utils.get_total_norm(gradients, foreach=True)
        return norm.item()

    def _clip(self, norm: float) -> None:
        if self.clip_norm and norm > self.clip_norm:
            torch._foreach_mul_([p.grad for p in self.parameters if p.grad is not None], self.clip_norm / norm)
