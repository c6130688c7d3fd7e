"""What the machine can do at most, run by benchmarks/training.py: multiply-adds of fp32 matrices, times two."""

from __future__ import annotations

import json
import sys
import time

import torch

SIDES = (512, 1024, 2048)
SECONDS = 0.7  # for each side


def rate(side: int) -> float:
    """The best of some multiplications, in operations per second."""
    left, right = torch.randn(side, side), torch.randn(side, side)
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        torch.mm(left, right)
        best = min(best, time.perf_counter() - began)
    return 2 * side**3 / best


if __name__ == "__main__":
    torch.set_num_threads(json.load(sys.stdin)["threads"])
    print(json.dumps({"operations": max(map(rate, SIDES))}))
