"""What all contestants of benchmarks/long.py share: random input, the clock, the memory.

A contestant is a script that calls `main(build)`. Standard input: a request in JSON; standard output: one line of JSON
with the seconds of a forward pass, those of a forward and backward pass, and the peak memory of the process. Only torch
is used here: a peer's environment has no Headwise.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

# Token ids (B, T), or states (B, T, D) for attention alone -> something to differentiate.
Run = Callable[[Tensor], Tensor]
VOCABULARY, CLASSES = 8000, 2


def main(build: Callable[[dict], tuple[Run, torch.nn.Module]]) -> None:
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    run, model = build(request)
    shape = (request["tokens"] // request["length"], request["length"])
    if request["part"] == "attention":
        inputs = torch.randn(*shape, request["model_dim"])
    else:
        inputs = torch.randint(5, VOCABULARY, shape)
    model.eval()
    with torch.no_grad():
        forward = clock(lambda: run(inputs), request["repeats"])
    model.train()
    both = clock(lambda: run(inputs).sum().backward(), request["repeats"])
    print(json.dumps({"forward": forward, "both": both, "peak": peak()}), flush=True)


def clock(work: Callable[[], object], repeats: int) -> float:
    """Seconds of one call: the best of some, after one that warms up."""
    work()
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def peak() -> int:
    """The most memory that this process ever held, in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1000)
