"""What all contestants of benchmarks/language_model.py share: the token ids, the two kinds of work, the clock.

A contestant is a script that calls `main(build, prepare)`. Standard input: a request in JSON; standard output: one line
of JSON. Only torch is used here: a peer's environment has no Headwise.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

RATE, BETAS, EPSILON, CLIP = 1e-4, (0.9, 0.95), 1e-8, 1.0  # of AdamW, the same for all
FIRST_WORD = 4  # the ids before are special tokens

Step = Callable[[torch.Tensor], float]  # ids (B, 1 + T) -> the mean loss of one update
Write = Callable[[int, int, bool], int]  # rows, tokens each, whether to sample -> tokens written; 0: does not do it


def main(
    build: Callable[[dict], tuple[Step, torch.nn.Module]],
    prepare: Callable[[dict], tuple[Write, torch.nn.Module]] | None = None,
) -> None:
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    torch.set_flush_denormal(True)  # before the first parallel work: threads inherit it
    torch.manual_seed(1)
    if request["work"] == "training":
        step, model = build(request)
        result = train(request, step)
    else:
        assert prepare is not None
        write, model = prepare(request)
        result = {"rates": generate(request, write)}
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(json.dumps({**result, "parameters": parameters, "peak": peak()}), flush=True)


def train(request: dict, step: Step) -> dict:
    """Times `steps` updates after `warmup` others; the ids are made before."""
    batches = list(blocks(request))
    losses, began = [], 0.0
    for number, ids in enumerate(batches):
        if number == request["warmup"]:
            began = time.perf_counter()
        losses.append(step(ids))
    seconds = time.perf_counter() - began
    tokens = request["steps"] * request["rows"] * request["sizes"]["max_length"]
    return {"tokens": tokens, "seconds": seconds, "losses": losses}


def blocks(request: dict) -> Iterator[torch.Tensor]:
    """Words by Zipf's law, (rows, 1 + context) for each update."""
    chance = torch.Generator().manual_seed(request["round"])
    words = torch.arange(1, request["sizes"]["vocab"] - FIRST_WORD + 1, dtype=torch.float64).reciprocal()
    size = request["rows"] * (request["sizes"]["max_length"] + 1)
    for _ in range(request["warmup"] + request["steps"]):
        drawn = torch.multinomial(words, size, replacement=True, generator=chance)
        yield (drawn + FIRST_WORD).view(request["rows"], -1)


def generate(request: dict, write: Write) -> dict[str, float]:
    """Tokens per second for each setting that the contestant has, the second of two times: the first warms up."""
    rates = {}
    for rows in request["batches"]:
        for sample in (False, True):
            if not write(rows, 8, sample):
                continue
            began = time.perf_counter()
            written = write(rows, request["tokens"], sample)
            rates[f"{rows} {'sampled' if sample else 'greedy'}"] = written / (time.perf_counter() - began)
    return rates


def adamw(model: torch.nn.Module) -> torch.optim.Optimizer:
    """The fast one for every peer, whatever its own loop would take."""
    return torch.optim.AdamW(model.parameters(), RATE, BETAS, EPSILON, fused=True)


def plain_update(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> float:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    return loss.item()


def peak() -> int:
    """The most memory that this process ever held, in MB (unlike ru_maxrss, VmHWM does not begin at the parent's)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1000)
