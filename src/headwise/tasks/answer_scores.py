"""The accuracy of a validation, read off the answers that come with its losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwise.data.batch import Batch
    from headwise.losses import BatchLoss


class AnswerScorer:
    """The share of targets that were the likeliest answer."""

    def __init__(self) -> None:
        self.right = self.total = 0

    def add(self, batch: Batch, sums: BatchLoss) -> None:
        if sums.answers is not None:
            flat = batch.targets.flatten()
            wanted = flat[flat != batch.ignore]
            self.right += int((wanted.cpu() == sums.answers.cpu()).sum())
            self.total += len(wanted)

    def __call__(self) -> tuple[dict[str, float], list[tuple[str, str, str]]]:
        accuracy = self.right / max(self.total, 1)
        self.right = self.total = 0
        return {"accuracy": accuracy}, []
