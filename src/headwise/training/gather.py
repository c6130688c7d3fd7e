"""Collects the weights, optimizer state and averages of a model, and what it carries, as named, full tensors.

A tensor that is sharded over ranks (FSDP2) is assembled by all of them together; any other is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import IntEnum

import torch
from torch import Tensor, nn

from headwise.bundle.weights import named_weights, set_weights
from headwise.models.interface import Network
from headwise.training.carry import Carry
from headwise.training.distributed import World
from headwise.training.ema import MovingAverage
from headwise.training.optimizers import optimizer_tensors

ALL = ("weights", "optimizer", "average")


def collect(
    parts: tuple[str, ...],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    average: MovingAverage | None,
    keep: bool = True,
) -> dict[str, Tensor]:
    """Collects tensors named 'weights:…', 'optimizer:…' and 'average:…'; without `keep`, only sends its shards."""
    sources = {
        "weights": lambda: named_weights(model),
        "optimizer": lambda: optimizer_tensors(optimizer, model),
        "average": lambda: average.tensors() if average else {},
    }
    collected = {}
    for part in parts:
        for name, tensor in sources[part]().items():
            full = whole(tensor)
            if keep:
                # An assembled tensor leaves the device at once, since all of them might not fit there.
                collected[f"{part}:{name}"] = full if full is tensor else full.cpu()
    return collected


def part_of(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    """Selects the tensors of one part, without its name in theirs."""
    return {name.partition(":")[2]: tensor for name, tensor in tensors.items() if name.startswith(f"{part}:")}


def whole(tensor: Tensor) -> Tensor:
    """Assembles a full tensor from the shards of all ranks; all of them must call this."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def placed(tensor: Tensor, like: Tensor) -> Tensor:
    """Cuts this rank's shard out of a full tensor, sharded like `like`."""
    if not hasattr(like, "full_tensor") or tensor.shape != like.shape:
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor  # takes seconds to import

    assert isinstance(like, DTensor)
    # No source rank: every rank has read the full tensor and cuts out its own shard.
    return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


class Replica:
    """A full copy of a sharded model on rank 0, to validate and decode with. It stays in main memory between uses."""

    def __init__(self, model: Network, device: torch.device) -> None:
        self.model, self.device = model.eval(), device

    @contextmanager
    def with_weights(self, weights: dict[str, Tensor]) -> Iterator[Network]:
        """Loads the weights and moves the model to the device for the block."""
        set_weights(self.model, weights)
        self.model.to(self.device)
        try:
            yield self.model
        finally:
            self.model.to("cpu")


class Order(IntEnum):
    """What rank 0 may ask of the other ranks before it broadcasts whether the run continues."""

    GATHER_ALL = 100
    GATHER_EVALUATED = 101


@dataclass
class FullModel:
    """The full model for rank 0's hooks, whether or not it is sharded."""

    model: Network
    optimizer: torch.optim.Optimizer
    world: World
    average: MovingAverage | None = None
    replica: Replica | None = None  # on rank 0, if the model is sharded
    carry: Carry = field(default_factory=Carry)

    def gather(self) -> dict[str, Tensor]:
        """Collects everything that a checkpoint keeps."""
        return self._collect(Order.GATHER_ALL)

    def evaluated_weights(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Selects the weights that are validated and saved: the averages if there are any."""
        return part_of(tensors, self._evaluated_part)

    @contextmanager
    def evaluated(self) -> Iterator[Network]:
        """Yields the model in evaluation mode, with averaged weights if there are any; restores training mode after."""
        if self.replica is not None:
            with self.replica.with_weights(self.evaluated_weights(self._collect(Order.GATHER_EVALUATED))) as replica:
                yield replica
            return
        model = self.model.eval()
        try:
            with self.average.applied() if self.average else nullcontext():
                yield model
        finally:
            model.train()

    def follow(self, order: int) -> None:
        """Takes part, on the other ranks, in what rank 0 asked for."""
        self._gather_parts(order)

    @property
    def _evaluated_part(self) -> str:
        return "average" if self.average else "weights"

    def _collect(self, order: Order) -> dict[str, Tensor]:
        carries = self.world.size > 1 and self.model.segment is not None
        if self.replica is not None or carries:  # otherwise rank 0 has all of it
            self.world.broadcast(order)
        return self._gather_parts(order)

    def _gather_parts(self, order: int) -> dict[str, Tensor]:
        if order != Order.GATHER_ALL:
            return collect((self._evaluated_part,), self.model, self.optimizer, self.average, self.world.leads)
        collected = collect(ALL, self.model, self.optimizer, self.average, self.world.leads)
        if self.model.segment is not None:
            carried = self.carry.gathered(self.world)
            collected |= {f"carry:{name}": tensor for name, tensor in carried.items() if self.world.leads}
        return collected
