"""What the contestants of benchmarks/images.py share: the pictures, the two kinds of work, the clock.

A contestant is a script that calls `main(build, prepare)`. Standard input: a request in JSON; standard output: one line
of JSON. Only torch, numpy and PIL are used here: a peer's environment has no Headwise.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

RATE, BETAS, EPSILON, CLIP = 1e-4, (0.9, 0.98), 1e-8, 1.0  # of AdamW, the same for all
MEAN, STD = 0.5, 0.5

Step = Callable[[torch.Tensor, torch.Tensor], float]  # pixels (B, C, size, size), labels (B,) -> mean loss of an update
Classify = Callable[[Sequence[str]], Sequence[int]]  # names of files -> classes


def main(
    build: Callable[[dict], tuple[Step, torch.nn.Module]],
    prepare: Callable[[dict], tuple[Classify, torch.nn.Module]],
    text: str | None = None,
) -> None:
    """Reads the request (`text`, if it was read before), does the work and prints the figures."""
    request = json.loads(sys.stdin.read() if text is None else text)
    torch.set_num_threads(request["threads"])
    torch.set_flush_denormal(True)  # before the first parallel work: threads inherit it
    torch.manual_seed(1)
    if request["work"] == "training":
        step, model = build(request)
        result = train(request, step)
    else:
        answer, model = prepare(request)
        result = classify(request, answer)
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(json.dumps({**result, "parameters": parameters, "peak": peak()}), flush=True)


def train(request: dict, step: Step) -> dict:
    """Times `steps` updates after `warmup` others."""
    sizes, chance = request["sizes"], torch.Generator().manual_seed(request["round"])
    shape = (request["batch"], sizes["channels"], sizes["image_size"], sizes["image_size"])
    pixels = torch.randn(shape, generator=chance)
    labels = torch.randint(0, sizes["classes"], shape[:1], generator=chance)
    losses, began = [], 0.0
    for number in range(request["warmup"] + request["steps"]):
        if number == request["warmup"]:
            began = time.perf_counter()
        losses.append(step(pixels, labels))
    seconds = time.perf_counter() - began
    return {"pictures": request["steps"] * request["batch"], "seconds": seconds, "losses": losses}


def classify(request: dict, answer: Classify) -> dict:
    """Times the classification of all files after that of a few."""
    names = json.loads(Path(request["names"]).read_text(encoding="utf-8"))
    answer(names[: 2 * request["batch"]])
    began = time.perf_counter()
    answers = answer(names)
    seconds = time.perf_counter() - began
    assert len(answers) == len(names)
    return {"pictures": len(names), "seconds": seconds}


def adamw(model: torch.nn.Module) -> torch.optim.Optimizer:
    """The fast one for every peer, whatever its own loop would take."""
    return torch.optim.AdamW(model.parameters(), RATE, BETAS, EPSILON, fused=True)


def plain_step(model: torch.nn.Module, logits: Callable[[torch.Tensor], torch.Tensor]) -> Step:
    """The usual update of a peer."""
    optimizer = adamw(model)

    def step(pixels: torch.Tensor, labels: torch.Tensor) -> float:
        loss = torch.nn.functional.cross_entropy(logits(pixels), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        return loss.item()

    return step


def peak() -> int:
    """The most memory that this process ever held, in MB (unlike ru_maxrss, VmHWM does not begin at the parent's)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1000)
