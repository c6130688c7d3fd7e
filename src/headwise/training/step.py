"""One update: forward, backward, clip, step. The loss is kept as a sum and a count, and divided once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from headwise.data.batch import Batch
from headwise.losses import Loss, batch_loss
from headwise.models.interface import Network
from headwise.nn.kernels.dropout import seeded_dropout
from headwise.training.carry import Carry
from headwise.training.device import all_cores, prepare_worker
from headwise.training.optimizers import set_rate


@dataclass(frozen=True)
class _Share:
    """What one share of a batch contributes to an update."""

    loss: float
    log_loss: float
    gradients: Sequence[Tensor | None]
    carry: tuple[Tensor, ...]


@dataclass(frozen=True)
class Sums:
    """Sums over all targets of an update, whose mean gradient is in the parameters' `grad`."""

    loss: float
    log_loss: float
    tokens: int
    positions: int


@dataclass(frozen=True)
class Update:
    """The figures of an update: means per target token, and whether it was applied."""

    loss: float  # the objective, with label smoothing
    log_loss: float  # without label smoothing: its exp is the perplexity
    tokens: int
    positions: int  # target positions, including padding
    norm: float  # gradient norm, before clipping
    rate: float
    skipped: bool
    lines: tuple[int, ...] = ()  # if skipped: the lines of the corpus that it was computed from


class Updater:
    """Applies one update to a model: update = updater(batch, rate, step).

    A batch is split into shares of whole rows. `workers` of them are computed at a time, each in its own thread on one
    core: with small matrices this is faster than splitting every operation over the cores. With `accumulate` there are
    that many rounds: the same update in less memory. The shares' gradients are summed in order, and dropout is a
    function of (seed, step, share), so the result does not depend on which thread finishes first.
    """

    def __init__(
        self,
        model: Network,
        optimizer: torch.optim.Optimizer,
        *,
        loss: Loss = batch_loss,
        smoothing: float = 0.0,
        clip_norm: float = 0.0,
        accumulate: int = 1,
        workers: int = 1,
        seed: int = 0,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.model, self.optimizer, self.loss = model, optimizer, loss
        self.smoothing, self.clip_norm, self.autocast, self.seed = smoothing, clip_norm, autocast, seed
        self.shares, self.workers = accumulate * workers, workers
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.device = self.parameters[0].device
        self.carry = Carry()
        self.pool = ThreadPoolExecutor(workers, "headwise-worker", prepare_worker) if workers > 1 else None

    def __call__(self, batch: Batch, rate: float, step: int = 0) -> Update:
        sums = self._backward(batch, step)
        with all_cores(self.workers) if self.pool else nullcontext():  # the workers are idle by now
            norm, skipped = self._step(math.isfinite(sums.loss), rate)
        if skipped:  # what it left behind may be NaN or infinite too
            self.carry.forget()
        tokens = max(sums.tokens, 1)
        lines = self._lines(batch) if skipped else ()
        return Update(
            sums.loss / tokens, sums.log_loss / tokens, sums.tokens, sums.positions, norm, rate, skipped, lines
        )

    def _backward(self, batch: Batch, step: int) -> Sums:
        batch = self.carry.into(batch)
        parts = [batch] if self.shares == 1 else batch.split(self.shares)
        compute = partial(self._share, tokens=batch.tokens)
        seeds = [share_seed(self.seed, step, number) for number in range(len(parts))]
        loss, log_loss, carries = 0.0, 0.0, list[tuple[Tensor, ...]]()
        for part in (self.pool.map if self.pool else map)(compute, parts, seeds):
            self._add(part.gradients)
            loss, log_loss = loss + part.loss, log_loss + part.log_loss
            carries.append(part.carry)
        self.carry.keep(carries)
        return Sums(loss, log_loss, batch.tokens, batch.positions)

    def _lines(self, batch: Batch) -> tuple[int, ...]:
        return tuple(batch.lines.tolist())

    def _step(self, finite: bool, rate: float) -> tuple[float, bool]:
        """Returns the gradient norm, and whether the update was skipped because something is NaN or infinite."""
        norm = self._gradient_norm()
        skipped = not (finite and math.isfinite(norm))
        if not skipped:
            self._clip(norm)
            set_rate(self.optimizer, rate)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm, skipped

    def _share(self, part: Batch, seed: int, tokens: int) -> _Share:
        """Computes these rows' contribution to the gradient of (sum of losses) / (targets of the whole update)."""
        if self.device.type != "cpu":
            torch.manual_seed(seed)
        with seeded_dropout(seed), self._precision():
            sums = self.loss(self.model, part.to(self.device), self.smoothing)
        gradients = torch.autograd.grad(sums.total / tokens, self.parameters, allow_unused=True)
        return _Share(sums.total.item(), sums.log_loss.item(), gradients, sums.carry)

    def _add(self, gradients: Sequence[Tensor | None]) -> None:
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            if gradient is not None:
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)

    def _precision(self) -> AbstractContextManager[object]:
        return nullcontext() if self.autocast is None else torch.autocast(self.device.type, self.autocast)

    def _gradient_norm(self) -> float:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm: Tensor = torch.nn.utils.get_total_norm(gradients, foreach=True)
        return norm.item()

    def _clip(self, norm: float) -> None:
        if self.clip_norm and norm > self.clip_norm:
            torch._foreach_mul_([p.grad for p in self.parameters if p.grad is not None], self.clip_norm / norm)


def share_seed(seed: int, step: int, share: int) -> int:
    """Hashes (seed, step, share) to the seed of a share: neighbouring seeds must not give similar dropout masks."""
    digest = hashlib.blake2b(f"dropout {seed} {step} {share}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
