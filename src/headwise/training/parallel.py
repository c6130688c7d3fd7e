"""One update over several processes: PyTorch's DistributedDataParallel, or FSDP2 where weights are sharded too.

A rank does what a thread does in one process (`step.py`): it computes the gradient of its share of the sentences, and
the shares are added up. Both engines average over the ranks, so each rank's loss is multiplied by their number, and
what comes out is divided by the targets of all ranks, once.
"""

from __future__ import annotations

import inspect
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from headwise.data.batch import Batch
from headwise.losses import Loss
from headwise.models.interface import Network
from headwise.nn.kernels.dropout import seeded_dropout
from headwise.training.distributed import World
from headwise.training.gather import whole
from headwise.training.step import Sums, Updater, share_seed


class Objective(nn.Module):
    """The loss as a module: what the engines wrap, because they act before and after a module's `forward`."""

    def __init__(self, model: Network, loss: Loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
        sums = self.loss(self.model, batch, smoothing)
        return sums.total, sums.log_loss


def replicate(model: Network, loss: Loss) -> nn.Module:
    """Every rank has all weights; gradients are summed while the backward pass still runs.

    Buffers are tables that every rank computes for itself, as long as its sentences are; the option has two names.
    """
    known = inspect.signature(DistributedDataParallel.__init__).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    options: dict[str, Any] = {name: False, "gradient_as_bucket_view": True}  # gradients are held once, not twice
    return DistributedDataParallel(Objective(model, loss), **options)


def shard(model: Network, loss: Loss, device: torch.device, size: int) -> nn.Module:
    """Every rank keeps 1/size of all weights, gradients and optimizer state; a unit is whole only while it is used."""
    from torch.distributed.device_mesh import init_device_mesh  # seconds of imports that replicas do not need
    from torch.distributed.fsdp import fully_shard

    # Nothing here is changed in place, which is what it warns of.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module", category=UserWarning)
    mesh = init_device_mesh(device.type, (size,))
    objective = Objective(model, loss)
    for unit in list(model.shard_units()):
        fully_shard(unit, mesh=mesh)
    fully_shard(objective, mesh=mesh)  # the rest: embeddings and output
    model.to(device)  # buffers
    return objective


class RankUpdater(Updater):
    """The Updater of one rank among several: the same update on all of them, or on none."""

    def __init__(self, objective: nn.Module, world: World, model: Network, *arguments: Any, **options: Any) -> None:
        super().__init__(model, *arguments, **options)
        self.objective, self.world = objective, world
        self._warm = False

    def _backward(self, batch: Batch, step: int) -> Sums:
        if not self._warm:
            self._warm_up(batch.blank())
        parts = batch.split(self.shares)
        tokens, positions, before = self._of_all(batch, len(parts))
        loss = log_loss = 0.0
        for number in range(self.shares):
            # A rank that has fewer parts takes part all the same, with a weight of nothing.
            part, weight = (parts[number], self.world.size / tokens) if number < len(parts) else (batch.blank(), 0.0)
            seed = share_seed(self.seed, step, before + number)
            with nullcontext() if number == self.shares - 1 else self._unsynchronised():
                total, log = self._forward_backward(part, seed, weight)
            if weight:
                loss, log_loss = loss + total, log_loss + log
        loss, log_loss = self.world.sum([loss, log_loss])
        return Sums(loss, log_loss, tokens, positions)

    def _of_all(self, batch: Batch, parts: int) -> tuple[int, int, int]:
        """Targets and positions of all ranks, and how many parts the ranks before this one have."""
        own = [parts * (rank == self.world.rank) for rank in range(self.world.size)]
        tokens, positions, *counts = map(int, self.world.sum([batch.tokens, batch.targets.numel(), *own]))
        return tokens, positions, sum(counts[: self.world.rank])

    def _forward_backward(self, part: Batch, seed: int, weight: float) -> tuple[float, float]:
        if self.device.type != "cpu":
            torch.manual_seed(seed)
        with seeded_dropout(seed), self._precision():
            total, log_loss = self.objective(part.to(self.device), self.smoothing)
        (total * weight).backward()
        return total.item(), log_loss.item()

    def _warm_up(self, blank: Batch) -> None:
        """The first backward pass is one that does not count.

        After it DistributedDataParallel orders its buckets anew, which changes the order in which ranks are added up. A
        run that goes on must add up as the uninterrupted one did.
        """
        self._forward_backward(blank, 0, 0.0)
        self.optimizer.zero_grad(set_to_none=True)
        self._warm = True

    def _unsynchronised(self) -> AbstractContextManager[None]:
        """Replicas add up their micro-batches first; shards do not, because the whole gradient is what does not fit."""
        return self.objective.no_sync() if isinstance(self.objective, DistributedDataParallel) else nullcontext()

    def _gradient_norm(self) -> float:
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None], foreach=True)
        return float(whole(norm).item())

    def _lines(self, batch: Batch) -> tuple[int, ...]:
        return tuple(self.world.joined_up(batch.lines).tolist())
