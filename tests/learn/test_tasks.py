"""A Transformer must learn to copy, to reverse and to sort: the parts together do what they are for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import headwise as hw
from headwise.config.schema import Training
from headwise.data.pairs import pair_batch
from headwise.decoding.options import SearchOptions
from headwise.decoding.torch_engine import TorchEngine
from headwise.text.ragged import Ragged
from headwise.training.optimizers import build_optimizer
from headwise.training.schedules import build_schedule
from headwise.training.step import Updater

SYMBOLS, FIRST = 16, 4  # ids 4…19; 0…3 are special
Task = Callable[[np.ndarray], np.ndarray]
TASKS: dict[str, Task] = {"copy": lambda x: x, "reverse": lambda x: x[::-1], "sort": np.sort}


def draw(generator: np.random.Generator, task: Task, rows: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    sources = [generator.integers(FIRST, FIRST + SYMBOLS, generator.integers(2, 9)) for _ in range(rows)]
    return sources, [task(source) for source in sources]


def ragged(rows: list[np.ndarray]) -> Ragged:
    return Ragged(np.concatenate(rows), np.array([len(row) for row in rows]))


@pytest.mark.parametrize("name", TASKS)
def test_learns_the_task_to_99_percent_exact_sequences(name: str) -> None:
    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    generator = np.random.default_rng(1)
    steps = 600
    model = hw.Transformer(
        source_vocab=FIRST + SYMBOLS, model_dim=64, num_heads=4, encoder_layers=2, decoder_layers=2, ff_dim=128,
        dropout=0.0, norm="pre",
    )  # fmt: skip
    settings = Training(schedule="linear", learning_rate=3e-3, warmup=60)
    schedule = build_schedule(settings, 64, steps)
    updater = Updater(model, build_optimizer(settings, model.parameters()), smoothing=0.0, clip_norm=1.0)
    for step in range(1, steps + 1):
        updater(pair_batch(*map(ragged, draw(generator, TASKS[name], 64))), schedule(step))
    sources, targets = draw(np.random.default_rng(2), TASKS[name], 500)
    found = TorchEngine(model).search([s.tolist() for s in sources], SearchOptions.of_model({}, beam=1))
    exact = sum(list(best[0].tokens) == target.tolist() for best, target in zip(found, targets, strict=True))
    assert exact / len(sources) >= 0.99
