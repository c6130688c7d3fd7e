"""One update over several processes: PyTorch's DistributedDataParallel, or FSDP2 where weights are sharded too.

A rank does what a thread does in one process (`step.py`): it computes the gradient of its share of the sentences, and
the shares are summed. Both engines average over the ranks, so each rank's loss is multiplied by the number of ranks and
divided once by the number of targets of all ranks.
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
    """Computes the loss in a module's `forward`, because that is what both engines wrap."""

    def __init__(self, model: Network, loss: Loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        sums = self.loss(self.model, batch, smoothing)
        return sums.total, sums.log_loss, sums.carry


def replicate(model: Network, loss: Loss) -> nn.Module:
    """Gives every rank all weights; gradients are summed while the backward pass still runs.

    Buffers are not synchronised: they are tables that every rank computes for itself, as long as its own sentences. The
    option for that has two names, depending on the version of torch.
    """
    known = inspect.signature(DistributedDataParallel.__init__).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    options: dict[str, Any] = {name: False, "gradient_as_bucket_view": True}  # gradients are held once, not twice
    return DistributedDataParallel(Objective(model, loss), **options)


def shard(model: Network, loss: Loss, device: torch.device, size: int) -> nn.Module:
    """Leaves each rank 1/size of all weights, gradients and optimizer state; a unit is assembled only while in use."""
    from torch.distributed.device_mesh import init_device_mesh  # takes seconds to import, and replicas do not need it
    from torch.distributed.fsdp import fully_shard

    # The warning is about in-place changes, of which there are none here.
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
        parts = self.carry.into(batch).split(self.shares)
        tokens, positions, before = self._of_all(batch, len(parts))
        loss, log_loss, carries = 0.0, 0.0, list[tuple[Tensor, ...]]()
        for number in range(self.shares):
            # A rank with fewer parts must still take part in the collective calls: with a blank batch of weight 0.
            part, weight = (parts[number], self.world.size / tokens) if number < len(parts) else (batch.blank(), 0.0)
            seed = share_seed(self.seed, step, before + number)
            with nullcontext() if number == self.shares - 1 else self._unsynchronised():
                total, log, carry = self._forward_backward(part, seed, weight)
            if weight:
                loss, log_loss = loss + total, log_loss + log
                carries.append(carry)
        self.carry.keep(carries)
        loss, log_loss = self.world.sum([loss, log_loss])
        return Sums(loss, log_loss, tokens, positions)

    def _of_all(self, batch: Batch, parts: int) -> tuple[int, int, int]:
        """Returns the targets and positions of all ranks, and the number of parts of the ranks before this one."""
        own = [parts * (rank == self.world.rank) for rank in range(self.world.size)]
        tokens, positions, *counts = map(int, self.world.sum([batch.tokens, batch.positions, *own]))
        return tokens, positions, sum(counts[: self.world.rank])

    def _forward_backward(self, part: Batch, seed: int, weight: float) -> tuple[float, float, tuple[Tensor, ...]]:
        if self.device.type != "cpu":
            torch.manual_seed(seed)
        with seeded_dropout(seed), self._precision():
            total, log_loss, carry = self.objective(part.to(self.device), self.smoothing)
        (total * weight).backward()
        return total.item(), log_loss.item(), carry

    def _warm_up(self, blank: Batch) -> None:
        """Runs a first backward pass that does not count.

        After its first pass DistributedDataParallel rearranges its buckets, which changes the order of summation. A
        resumed run must sum in the same order as an uninterrupted one.
        """
        self._forward_backward(blank, 0, 0.0)
        self.optimizer.zero_grad(set_to_none=True)
        self._warm = True

    def _unsynchronised(self) -> AbstractContextManager[None]:
        """Lets replicas sum their micro-batches before synchronising; shards cannot, as a full gradient may not fit."""
        return self.objective.no_sync() if isinstance(self.objective, DistributedDataParallel) else nullcontext()

    def _gradient_norm(self) -> float:
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None], foreach=True)
        return float(whole(norm).item())

    def _lines(self, batch: Batch) -> tuple[int, ...]:
        return tuple(self.world.gather(batch.lines).tolist())
