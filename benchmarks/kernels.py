"""Compares the hand-written kernels with PyTorch's own, forward and backward in one thread: times and ratios.

python benchmarks/kernels.py [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from results import Result

from headwise.losses import projected_cross_entropy
from headwise.nn import scaled_dot_product_attention
from headwise.nn.kernels.distance_attention import distance_attention, shifted
from headwise.nn.kernels.dropout import dropout
from headwise.nn.kernels.dropped_attention import dropped_attention
from headwise.nn.kernels.rms_norm import rms_norm
from headwise.nn.masks import causal_mask

ROUNDS = 15


RESULT = Result("kernels", "Hand-written parts, one thread, forward and backward", {"rounds": ROUNDS}, threads=1)


def milliseconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def compare(name: str, ours: Callable[[], None], theirs: Callable[[], None], peer: str = "PyTorch") -> None:
    """Times both in alternating rounds, so that other load on the machine affects both equally."""
    ours()
    theirs()
    rounds = [(milliseconds(ours), milliseconds(theirs)) for _ in range(ROUNDS)]
    first, second = (list(side) for side in zip(*rounds, strict=True))
    row = RESULT.add(name, "ms", first, {peer: second}, better="lower")
    print(f"{name:58} {row.ours:9.2f} ms {statistics.median(second):9.2f} ms   {row.ratio:5.2f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    print(f"{'':58} {'headwise':>12} {'torch':>12}")

    x = torch.randn(4096, 512, requires_grad=True)
    compare(
        "dropout 0.1 of 4,096 x 512",
        lambda: dropout(x, 0.1).sum().backward(),
        lambda: F.dropout(x, 0.1).sum().backward(),
    )

    rows, scales = torch.randn(32, 30, 128, requires_grad=True), torch.ones(128, requires_grad=True)
    compare(
        "RMSNorm of 32 sentences of 30, width 128",
        lambda: rms_norm(rows, scales, 1e-6).sum().backward(),
        lambda: F.rms_norm(rows, (128,), scales, 1e-6).sum().backward(),
    )

    q, k, v = (torch.randn(256, 16, 4, 32).transpose(1, 2).requires_grad_() for _ in range(3))
    compare(
        "attention with dropout, 256 sentences of 16, 4 heads of 32",
        lambda: dropped_attention(q, k, v, None, 0.1).sum().backward(),
        lambda: F.scaled_dot_product_attention(q, k, v, dropout_p=0.1).sum().backward(),
    )
    compare(
        "the same against the equation",
        lambda: dropped_attention(q, k, v, None, 0.1).sum().backward(),
        lambda: (F.dropout(scaled_dot_product_attention(q, k, v)[1], 0.1) @ v).sum().backward(),
    )

    q, p = (torch.randn(8, 8, 128, 32, requires_grad=True) for _ in range(2))
    k, v = (torch.randn(8, 8, 256, 32, requires_grad=True) for _ in range(2))
    r, seen = torch.randn(8, 256, 32, requires_grad=True), causal_mask(128, past=128)[None, None]

    def whole_tensors() -> None:
        by_distance = shifted(p @ F.pad(r, (0, 0, 1, 0)).mT).masked_fill(~seen, -torch.inf)
        F.scaled_dot_product_attention(q, k, v, attn_mask=by_distance, scale=1.0).sum().backward()

    compare(
        "attention by distance, 8 segments of 128 with memory, 8 heads of 32",
        lambda: distance_attention(q, p, k, v, r, seen, 0.0).sum().backward(),
        whole_tensors,
    )

    states, weight = torch.randn(2048, 128, requires_grad=True), torch.randn(8000, 128, requires_grad=True)
    targets = torch.randint(1, 8000, (2048,))
    compare(
        "projection to 8,000 classes and smoothed loss of 2,048 rows",
        lambda: projected_cross_entropy(states, weight, targets)[0].backward(),
        lambda: F.cross_entropy(
            states @ weight.T, targets, reduction="sum", label_smoothing=0.1, ignore_index=0
        ).backward(),
    )
    compare(
        "the same against F.linear_cross_entropy",
        lambda: projected_cross_entropy(states, weight, targets)[0].backward(),
        lambda: F.linear_cross_entropy(
            states, weight, targets, reduction="sum", label_smoothing=0.1, ignore_index=0
        ).backward(),
    )
    if arguments.json:
        RESULT.save(arguments.json)


if __name__ == "__main__":
    main()
