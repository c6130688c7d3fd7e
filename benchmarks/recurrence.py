"""Table 1 of the paper, measured: recurrence against self-attention, and an RNN against a Transformer of equal size.

    python benchmarks/recurrence.py [--tokens 2048] [--rounds 3] [--copy] [--json FILE]

Sequential operations and path lengths are counted in the graph that autograd records of one layer: matrix products that
wait for each other, and operations on the shortest way from the first input to the last output. Then processor time of
a training step (forward and backward, no optimizer) on one core, contestants in turns, the best of the rounds: batches
of the same number of tokens in sentences of different lengths, and one sentence alone. About a minute in all.

--copy trains three small networks to copy random symbols, another minute, and prints how many sequences of each length
they copy without a mistake.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.config.families import find_family
from headwise.config.schema import Training
from headwise.data.batch import Batch
from headwise.data.pairs import pair_batch
from headwise.decoding.options import SearchOptions
from headwise.decoding.torch_engine import TorchEngine
from headwise.losses import batch_loss
from headwise.models.interface import Network
from headwise.models.recurrent import RecurrentSeq2Seq
from headwise.models.registry import build_model
from headwise.nn import MultiHeadAttention, scaled_dot_product_attention
from headwise.nn.recurrent import RecurrentLayer
from headwise.text.ragged import Ragged
from headwise.training.optimizers import build_optimizer
from headwise.training.schedules import build_schedule
from headwise.training.step import Updater

COUNTED, WIDTH = (8, 16, 32, 64), 32
LENGTHS = (8, 32, 128, 512)
VOCABULARY = 4000
COPY = (4, 16, 16, 600)  # first symbol, symbols, longest sequence, updates
COPIERS: dict[str, dict[str, Any]] = {
    "no attention": {"attention": "none"}, "additive": {"attention": "additive"}, "general": {"attention": "general"},
}  # fmt: skip
PRODUCTS = ("mmbackward",)  # mm, bmm, addmm
OPERATIONS = (*PRODUCTS, "mulbackward", "addbackward", "softmaxbackward", "tanhbackward", "sigmoidbackward")
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "Transformer": ("transformer", {"preset": "tiny"}),
    "RNN, no attention": ("rnn", {"preset": "rnn-tiny", "attention": "none", "hidden_dim": 336}),
    "RNN, attention": ("rnn", {"preset": "rnn-tiny", "input_feeding": False}),
    "RNN, input feeding": ("rnn", {"preset": "rnn-tiny"}),
}


# ---- one layer, counted


def chains(output: Tensor, first: Tensor) -> tuple[int, int]:
    """Products in the longest chain of the graph, and operations in the shortest one from `first` to `output`."""
    longest: dict[Any, int] = {}
    shortest: dict[Any, float] = {}
    pending = [output.grad_fn]
    while pending:  # children before parents; deep graphs would overflow a recursion
        node = pending[-1]
        children = [child for child, _ in node.next_functions if child is not None]
        waiting = [child for child in children if child not in longest]
        if waiting:
            pending += waiting
            continue
        pending.pop()
        product, operation = (any(kind in node.name().lower() for kind in kinds) for kinds in (PRODUCTS, OPERATIONS))
        longest[node] = product + max((longest[child] for child in children), default=0)
        reached = 0.0 if getattr(node, "variable", None) is first else float("inf")
        shortest[node] = operation + min([reached, *(shortest[child] for child in children)])
    return longest[output.grad_fn], int(shortest[output.grad_fn])


def attend(inputs: list[Tensor]) -> Tensor:
    """The last output of a self-attention layer, written as its equations."""
    attention = MultiHeadAttention(WIDTH, num_heads=4)
    x = torch.stack(inputs, dim=1)
    heads, _ = scaled_dot_product_attention(*attention.project(x, x, x))
    joined: Tensor = attention.output(heads.transpose(1, 2).flatten(2))
    return joined[:, -1]


def recur(inputs: list[Tensor]) -> Tensor:
    """The last output of an LSTM layer, step by step."""
    layer = RecurrentLayer("lstm", WIDTH, WIDTH)
    state: tuple[Tensor, ...] = (torch.zeros(1, WIDTH), torch.zeros(1, WIDTH))
    for x in inputs:
        state = layer.step(layer.project(x), state)
    return state[0]


def count(layer: Callable[[list[Tensor]], Tensor], length: int) -> tuple[int, int]:
    inputs = [torch.randn(1, WIDTH, requires_grad=True) for _ in range(length)]
    return chains(layer(inputs).sum(), inputs[0])


# ---- whole models, timed


def build(name: str) -> Network:
    family, options = CONTESTANTS[name]
    declared = find_family(family)
    assert declared is not None
    own = dict(options)
    settings = declared.resolve(own.pop("preset"), own).model_dump(mode="json")
    torch.manual_seed(1)
    return build_model(family, {"source_vocab": VOCABULARY, "target_vocab": VOCABULARY, **settings}).train()


def batch_of(sentences: int, length: int) -> Batch:
    ids = torch.randint(4, VOCABULARY, (2, sentences, length))
    lengths = torch.full((sentences,), length)
    return Batch.of((ids[0], ids[1], lengths), ids[1])


def seconds(model: Network, batch: Batch) -> float:
    start = time.process_time()
    torch.autograd.grad(batch_loss(model, batch, 0.1).total, list(model.parameters()))
    return time.process_time() - start


def measure(models: dict[str, Network], rounds: int, sentences: Callable[[int], int]) -> dict[str, dict[int, float]]:
    """Milliseconds of a training step, by model and length; `sentences` of a length make a batch."""
    best = {name: dict.fromkeys(LENGTHS, float("inf")) for name in models}
    for length in LENGTHS:
        batch = batch_of(sentences(length), length)
        for _ in range(rounds + 1):  # the first is a warm-up
            for name, model in models.items():
                best[name][length] = min(best[name][length], 1000 * seconds(model, batch))
    return best


# ---- one vector, or a look at all


def copying(**settings: Any) -> dict[int, float]:
    """Trains a small network to copy; the share of exact copies by length."""
    torch.manual_seed(1)
    generator, (first, symbols, longest, steps) = np.random.default_rng(1), COPY
    model = RecurrentSeq2Seq(
        source_vocab=first + symbols, model_dim=48, hidden_dim=64, encoder_layers=1, decoder_layers=1, dropout=0.0,
        **settings,
    )  # fmt: skip
    training = Training(schedule="linear", learning_rate=4e-3, warmup=40)
    schedule = build_schedule(training, 48, steps)
    updater = Updater(model, build_optimizer(training, model.parameters()), clip_norm=1.0)

    def draw(rows: int, length: int | None = None) -> Ragged:
        lengths = generator.integers(2, longest + 1, rows) if length is None else np.full(rows, length)
        return Ragged(generator.integers(first, first + symbols, lengths.sum()), lengths)

    for step in range(1, steps + 1):
        rows = draw(64)
        updater(pair_batch(rows, rows), schedule(step), step)
    right = {}
    for length in range(2, longest + 1, 2):
        sources = np.split(draw(200, length).tokens, 200)
        found = TorchEngine(model).search([one.tolist() for one in sources], SearchOptions(beam=1))
        right[length] = float(
            np.mean([list(best[0].tokens) == one.tolist() for best, one in zip(found, sources, strict=True)])
        )
    return right


def table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=2048, help="per batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--copy", action="store_true", help="train copying networks too")
    parser.add_argument("--json", type=Path, help="write the figures into this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    layers = {"self-attention": attend, "recurrence (LSTM)": recur}
    counted = {name: {length: count(layer, length) for length in COUNTED} for name, layer in layers.items()}
    print(
        "Matrix products that wait for each other / operations on the shortest path from the first word to the last:\n"
    )
    rows = [[name, *(f"{one} / {other}" for one, other in found.values())] for name, found in counted.items()]
    print(table(["", *(f"n = {length}" for length in COUNTED)], rows))
    models = {name: build(name) for name in CONTESTANTS}
    timed = {
        f"{arguments.tokens:,} tokens in sentences of n": measure(
            models, arguments.rounds, lambda length: arguments.tokens // length
        ),
        "one sentence of n tokens": measure(models, arguments.rounds, lambda length: 1),
    }
    for title, found in timed.items():
        print(f"\nMilliseconds of a training step, {title}, one core:\n")
        rows = []
        for name, model in models.items():
            weights = sum(parameter.numel() for parameter in model.parameters()) / 1e6
            rows.append([f"{name}, {weights:.2f} M weights", *(f"{found[name][length]:.0f}" for length in LENGTHS)])
        print(table(["", *(f"n = {length}" for length in LENGTHS)], rows))
    copied = {name: copying(**settings) for name, settings in COPIERS.items()} if arguments.copy else {}
    if copied:
        print("\nSequences copied without a mistake, by length:\n")
        lengths = list(next(iter(copied.values())))
        rows = [[name, *(f"{share:.0%}" for share in found.values())] for name, found in copied.items()]
        print(table(["", *map(str, lengths)], rows))
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"counted": counted, "milliseconds": timed, "copied": copied}, indent=1), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
