"""What all contestants of benchmarks/training.py share: the token ids, the batches, the clock.

A contestant is a script that calls `main(build)`. Standard input: a request in JSON; standard output: one line of JSON
with tokens, seconds, peak memory and losses. Only torch and numpy are used here: a peer's environment has no Headwise.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch

PAD, UNK, BOS, EOS = 0, 1, 2, 3
RATE, BETAS, EPSILON = 1e-4, (0.9, 0.98), 1e-9  # of Adam, the same for all
POSITIONS = 512  # longer than any sentence of the corpus


@dataclass(frozen=True)
class Batch:
    """Padded sentence pairs: tokens and an end of sentence; the target with a begin of sentence before it."""

    source: torch.Tensor  # (B, S)
    source_lengths: torch.Tensor  # (B,)
    target: torch.Tensor  # (B, 1 + T)
    tokens: int  # real target tokens, ends of sentences included
    source_tokens: int

    @property
    def targets(self) -> torch.Tensor:
        """What the model is to say, (B, T)."""
        return self.target[:, 1:]

    @property
    def padded(self) -> bool:
        return self.source_tokens < self.source.numel()


Step = Callable[[Batch], float]  # one update; gives the mean loss of a target token


def main(build: Callable[[dict], tuple[Step, torch.nn.Module]]) -> None:
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    torch.set_flush_denormal(True)  # before the first parallel work: threads inherit it
    torch.manual_seed(1)
    step, model = build(request)
    report(model, measure(request, step, ready(request)))


def report(model: torch.nn.Module, result: dict) -> None:
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(json.dumps({**result, "parameters": parameters, "peak": peak()}), flush=True)


def adam(model: torch.nn.Module) -> torch.optim.Optimizer:
    """The fast one for every peer, whatever its own loop would take."""
    return torch.optim.Adam(model.parameters(), RATE, BETAS, EPSILON, fused=True)


def measure(request: dict, step: Callable, batches: Iterable) -> dict:
    """Times `steps` updates after `warmup` others."""
    warmup, steps = request["warmup"], request["steps"]
    losses, timed, began = [], [], (0.0, 0.0)
    for number, batch in enumerate(islice(batches, warmup + steps)):
        if number == warmup:
            began = time.perf_counter(), time.process_time()
        losses.append(step(batch))
        if number >= warmup:
            timed.append(batch)
    seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    return {
        "seconds": seconds, "cpu_seconds": cpu, "losses": losses,
        "tokens": sum(batch.tokens for batch in timed), "positions": sum(batch.targets.numel() for batch in timed),
        "source_tokens": sum(batch.source_tokens for batch in timed),
        "source_positions": sum(batch.source.numel() for batch in timed),
    }  # fmt: skip


def peak() -> int:
    """The most memory that this process ever held, in MB (unlike ru_maxrss, VmHWM does not begin at the parent's)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1000)


# ---- batches, made before the clock starts


def ready(request: dict) -> list[Batch]:
    with np.load(request["ids"]) as arrays:
        ids = dict(arrays)
    count = request["warmup"] + request["steps"]
    if request["batches"] == "own":
        order, cuts = by_target_length(ids, request["batch_tokens"])
        chosen = np.resize(np.roll(np.random.default_rng(1).permutation(len(cuts) - 1), -request["first"]), count)
    else:
        order, cuts = ids["order"], ids["cuts"]
        chosen = np.arange(request["first"], request["first"] + count)
    return [make(ids, order[cuts[which] : cuts[which + 1]]) for which in chosen]


def by_target_length(ids: dict[str, np.ndarray], budget: int) -> tuple[np.ndarray, list[int]]:
    """The usual batching: sorted by target length (equal ones by source length), as many as fit, padding counted."""
    source, target = (np.diff(ids[f"{side}_offsets"]) + 1 for side in ("source", "target"))
    order = np.lexsort((source, target))
    cuts = [0]
    for place, length in enumerate(target[order]):
        if (place - cuts[-1] + 1) * length > budget:
            cuts.append(place)
    return order, [*cuts, len(order)]


def make(ids: dict[str, np.ndarray], rows: np.ndarray) -> Batch:
    source = [side_of(ids, "source", row) for row in rows]
    target = [side_of(ids, "target", row) for row in rows]
    return Batch(
        source=pad([[*sentence, EOS] for sentence in source]),
        source_lengths=torch.tensor([len(sentence) + 1 for sentence in source]),
        target=pad([[BOS, *sentence, EOS] for sentence in target]),
        tokens=sum(len(sentence) + 1 for sentence in target),
        source_tokens=sum(len(sentence) + 1 for sentence in source),
    )


def side_of(ids: dict[str, np.ndarray], side: str, row: int) -> list[int]:
    begin, end = ids[f"{side}_offsets"][row : row + 2]
    return ids[side][begin:end].tolist()


def pad(sentences: list[list[int]]) -> torch.Tensor:
    width = max(map(len, sentences))
    return torch.tensor([sentence + [PAD] * (width - len(sentence)) for sentence in sentences])
