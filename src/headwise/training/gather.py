"""Everything that training has of a model by name, whole, wherever the parts of it are.

A tensor that is sharded over ranks (FSDP2) is put together by all of them; any other is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor, nn

from headwise.bundle.weights import named_weights, set_weights
from headwise.models.interface import Network
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
    """Tensors named 'weights:…', 'optimizer:…' and 'average:…'. A rank that does not `keep` them only takes part."""
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
                # What was put together leaves the device at once: all of it might not fit there.
                collected[f"{part}:{name}"] = full if full is tensor else full.cpu()
    return collected


def part_of(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    return {name.partition(":")[2]: tensor for name, tensor in tensors.items() if name.startswith(f"{part}:")}


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, from all ranks, which must all ask for it."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def placed(tensor: Tensor, like: Tensor) -> Tensor:
    """This rank's part of a whole tensor, cut as `like` is."""
    if not hasattr(like, "full_tensor") or tensor.shape != like.shape:
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor  # seconds of imports

    assert isinstance(like, DTensor)
    # No source rank: every rank has read the whole tensor and cuts its own part out of it.
    return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


class Replica:
    """A whole copy of a sharded model on rank 0, to validate and decode with. Between uses it is in main memory."""

    def __init__(self, model: Network, device: torch.device) -> None:
        self.model, self.device = model.eval(), device

    @contextmanager
    def having(self, weights: dict[str, Tensor]) -> Iterator[Network]:
        set_weights(self.model, weights)
        self.model.to(self.device)
        try:
            yield self.model
        finally:
            self.model.to("cpu")


class Order(IntEnum):
    """What rank 0 may ask of the other ranks before it tells them how the run goes on."""

    GATHER_ALL = 100
    GATHER_EVALUATED = 101


@dataclass
class FullModel:
    """The model as a whole, for rank 0's hooks, wherever its parts are."""

    model: Network
    optimizer: torch.optim.Optimizer
    world: World
    average: MovingAverage | None = None
    replica: Replica | None = None  # on rank 0, of a model that is sharded over the ranks

    def gather(self) -> dict[str, Tensor]:
        """All that a checkpoint keeps."""
        return self._collect(Order.GATHER_ALL)

    def evaluated_weights(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Of what was gathered, the weights that are validated and kept: averages where there are any."""
        return part_of(tensors, self._evaluated_part)

    @contextmanager
    def evaluated(self) -> Iterator[Network]:
        """Evaluation mode, with averaged weights where they are kept; training goes on as if nothing had happened."""
        if self.replica is not None:
            with self.replica.having(self.evaluated_weights(self._collect(Order.GATHER_EVALUATED))) as replica:
                yield replica
            return
        model = self.model.eval()
        try:
            with self.average.applied() if self.average else nullcontext():
                yield model
        finally:
            model.train()

    def follow(self, order: int) -> None:
        """On the other ranks: take part in what rank 0 asked for."""
        self._gather_parts(order)

    @property
    def _evaluated_part(self) -> str:
        return "average" if self.average else "weights"

    def _collect(self, order: Order) -> dict[str, Tensor]:
        if self.replica is not None:  # otherwise rank 0 has all of it
            self.world.of_leader(order)
        return self._gather_parts(order)

    def _gather_parts(self, order: int) -> dict[str, Tensor]:
        parts = ALL if order == Order.GATHER_ALL else (self._evaluated_part,)
        return collect(parts, self.model, self.optimizer, self.average, self.world.leads)
