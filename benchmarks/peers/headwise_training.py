"""Headwise itself, run by benchmarks/training.py: store, batches and updates as `headwise train` has them.

Its batches are made by a thread while it trains, which is timed; those of the peers are ready before.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from measure_training import BETAS, EPSILON, RATE, measure, report

from headwise.config.cores import training_cores
from headwise.config.schema import Training
from headwise.data.batch import Batch
from headwise.data.cursor import Cursor, walk
from headwise.data.pairs import PairBatches
from headwise.data.prefetch import Prefetch
from headwise.data.store import Store
from headwise.models.registry import build_model
from headwise.training.device import keep_memory, prepare_worker
from headwise.training.optimizers import build_optimizer
from headwise.training.step import Updater


class Pairs:
    """A batch with the counts that `measure` wants of it."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.tokens, self.targets = batch, batch.tokens, batch.targets
        self.source, _, lengths = batch.inputs
        self.source_tokens = int(lengths.sum())


def main() -> None:
    request = json.load(sys.stdin)
    keep_memory()
    prepare_worker()
    torch.manual_seed(1)
    model = build_model(request["family"], {"source_vocab": request["vocabulary"], **request["sizes"]}).train()
    settings = Training(betas=BETAS, epsilon=EPSILON, learning_rate=RATE)
    workers = training_cores(request["threads"])
    optimizer = build_optimizer(settings, model.parameters())
    updater = Updater(model, optimizer, smoothing=request["smoothing"], workers=workers)
    batches = PairBatches(Store(Path(request["store"])), request["batch_tokens"], request["seed"])
    with Prefetch(walk(batches, Cursor(*request["cursor"]))) as ready:
        report(
            model, measure(request, lambda pairs: updater(pairs.batch, RATE).loss, (Pairs(batch) for batch, _ in ready))
        )


if __name__ == "__main__":
    main()
