"""A recurrent network with attention must learn to copy. How far it gets without attention is printed, not asserted."""

from __future__ import annotations

from typing import Any

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


def draw(generator: np.random.Generator, rows: int, longest: int) -> list[np.ndarray]:
    lengths = generator.integers(2, longest + 1, rows)
    return [generator.integers(FIRST, FIRST + SYMBOLS, length) for length in lengths]


def ragged(rows: list[np.ndarray]) -> Ragged:
    return Ragged(np.concatenate(rows), np.array([len(row) for row in rows]))


def taught(longest: int, **settings: Any) -> hw.RecurrentSeq2Seq:
    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    generator, steps = np.random.default_rng(1), 600
    model = hw.RecurrentSeq2Seq(
        source_vocab=FIRST + SYMBOLS, model_dim=48, hidden_dim=64, encoder_layers=1, decoder_layers=1, dropout=0.0,
        **settings,
    )  # fmt: skip
    training = Training(schedule="linear", learning_rate=4e-3, warmup=40)
    schedule = build_schedule(training, 48, steps)
    updater = Updater(model, build_optimizer(training, model.parameters()), smoothing=0.0, clip_norm=1.0)
    for step in range(1, steps + 1):
        rows = ragged(draw(generator, 64, longest))
        updater(pair_batch(rows, rows), schedule(step))
    return model


def exact(model: hw.RecurrentSeq2Seq, longest: int) -> dict[int, list[bool]]:
    """By length: whether each sequence was copied without a mistake."""
    sources = [source.tolist() for source in draw(np.random.default_rng(2), 500, longest)]
    found = TorchEngine(model).search(sources, SearchOptions.of_model({}, beam=1))
    right: dict[int, list[bool]] = {}
    for source, best in zip(sources, found, strict=True):
        right.setdefault(len(source), []).append(list(best[0].tokens) == source)
    return right


@pytest.mark.parametrize(
    "settings",
    [
        {"attention": "general"},
        {"attention": "additive", "cell": "gru", "input_feeding": False},
    ],
    ids=lambda settings: " ".join(map(str, settings.values())),
)
def test_learns_to_copy_to_99_percent_exact_sequences(settings: dict[str, Any]) -> None:
    right = [one for each in exact(taught(8, **settings), 8).values() for one in each]
    assert np.mean(right) >= 0.99


@pytest.mark.slow
def test_without_attention_it_is_shown_how_long_a_sequence_one_vector_holds() -> None:
    for length, right in sorted(exact(taught(16, attention="none"), 16).items()):
        print(f"{length:3} symbols: {np.mean(right):.0%} copied without a mistake")
