"""What a network keeps from one batch to the next, such as a memory of earlier segments: one row per row of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from headwise.data.batch import Batch
from headwise.data.cursor import share_of
from headwise.training.distributed import World


class Carry:
    """Hands the tensors that a batch leaves behind to the next one. For most networks there are none.

    Row b of every batch must belong to the same stream of text; the first batch of an epoch begins anew.
    """

    def __init__(self) -> None:
        self.tensors: tuple[Tensor, ...] = ()

    def into(self, batch: Batch) -> Batch:
        """Adds what is carried to the inputs of the batch that comes next."""
        if batch.index == 0:
            self.forget()
        return batch.with_inputs(self.tensors)

    def keep(self, parts: Iterable[tuple[Tensor, ...]]) -> None:
        """Takes what the parts of a batch leave behind, in the order of their rows."""
        self.tensors = tuple(torch.cat(part) if len(part) > 1 else part[0] for part in zip(*parts, strict=True))

    def forget(self) -> None:
        self.tensors = ()

    def gathered(self, world: World) -> dict[str, Tensor]:
        """The tensors with the rows of all ranks, by number; every rank must call this."""
        count = world.maximum(len(self.tensors))
        own = self.tensors or (None,) * count  # a rank may have no row
        return {str(number): world.gather_rows(tensor) for number, tensor in enumerate(own)}

    def restore(self, tensors: Mapping[str, Tensor], world: World, device: torch.device) -> None:
        """Takes this rank's rows of what was gathered, on however many ranks."""
        self.tensors = ()
        if tensors:
            rows = share_of(np.arange(len(tensors["0"])), world.rank, world.size)
            self.tensors = tuple(tensors[str(number)][rows].to(device) for number in range(len(tensors)))
        if self.tensors and not len(self.tensors[0]):
            self.forget()
