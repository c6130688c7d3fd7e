"""Everything that training has of a model by name, whole, wherever the parts of it are.

A tensor that is sharded over ranks (FSDP2) is put together by all of them; any other is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from headwise.bundle.weights import named_weights, set_weights
from headwise.models.registry import Model
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
    """'weights:…', 'optimizer:…' and 'average:…'. A rank that does not `keep` them helps to put them together."""
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

    def __init__(self, model: Model, device: torch.device) -> None:
        self.model, self.device = model.eval(), device

    @contextmanager
    def having(self, weights: dict[str, Tensor]) -> Iterator[Model]:
        set_weights(self.model, weights)
        self.model.to(self.device)
        try:
            yield self.model
        finally:
            self.model.to("cpu")
