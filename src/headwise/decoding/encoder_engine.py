"""Runs an encoder over many items: batches of similar size, one per core, answers in the order of the items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.cancellation import check_cancelled
from headwise.config.cores import decoding_cores
from headwise.decoding.item_batches import similar
from headwise.decoding.threads import side_by_side
from headwise.models.interface import Network

Tensors = Callable[[Sequence[Any]], tuple[Tensor, ...]]  # items as the network's inputs


class TorchEncoder:
    """Answers with what the network's `forward` gives: logits of labels, or vectors; one row per item."""

    name = "torch"

    def __init__(self, network: Network, tensors: Tensors, cost: Callable[[Any], int] = len) -> None:
        self.network, self.tensors, self.cost = network, tensors, cost
        self.device = next(network.parameters()).device

    def answers(self, items: Sequence[Any]) -> NDArray[np.float32]:
        """One row of numbers per item, in the order of the items."""
        batches = similar([self.cost(item) for item in items])
        jobs = [[items[place] for place in batch] for batch in batches]
        if len(jobs) > 1 and self.device.type == "cpu":
            rows = list(side_by_side(self._run, jobs, decoding_cores()))
        else:
            rows = [self._run(job) for job in jobs]
        found = np.empty((len(items), rows[0].shape[1] if rows else 0), dtype=np.float32)
        for batch, answer in zip(batches, rows, strict=True):
            found[batch] = answer
        return found

    def token_logits(self, items: Sequence[Any], places: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """For each item its logits over the vocabulary at the given places, (places, V)."""
        found: list[NDArray[np.float32]] = [np.zeros((0, 0), dtype=np.float32)] * len(items)
        for batch in similar([self.cost(item) for item in items]):
            rows = self._run_tokens([items[place] for place in batch], [places[place] for place in batch])
            for place, row in zip(batch, rows, strict=True):
                found[place] = row
        return found

    @torch.inference_mode()
    def _run_tokens(self, job: Sequence[Any], places: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        check_cancelled()
        states = self.network.states(*(tensor.to(self.device) for tensor in self.tensors(job)))
        picked = [states[row, list(columns)] for row, columns in enumerate(places)]
        return [self.network.output.logits(rows).float().cpu().numpy() for rows in picked]

    @torch.inference_mode()
    def _run(self, job: Sequence[Any]) -> NDArray[np.float32]:
        check_cancelled()
        inputs = (tensor.to(self.device) for tensor in self.tensors(job))
        answer: Tensor = self.network(*inputs)
        return answer.float().cpu().numpy()
