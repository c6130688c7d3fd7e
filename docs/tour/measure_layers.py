"""Measures the table of the tour's first chapter: one layer's time against length and against width.

    python docs/tour/measure_layers.py

One thread, no gradient, the best of several rounds in which the layers take turns; some seconds in all.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from headwise.nn import MultiHeadAttention, fast_attention

WINDOW, KERNEL, ROUNDS = 32, 3, 5
LENGTHS, WIDTHS = (64, 256, 1024, 4096), (64, 256, 1024)
FIXED_LENGTH, FIXED_WIDTH = 256, 256
Layer = Callable[[Tensor], Tensor]


def windowed(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    """Blocks of WINDOW positions, each of which looks at itself and at the block before it."""
    q, k, v = attention.project(x, x, x)  # (1, H, T, K)
    blocks = [tensor.unflatten(2, (-1, WINDOW)) for tensor in (q, k, v)]  # (1, H, blocks, WINDOW, K)
    query, keys, values = blocks[0], *(torch.cat((tensor.roll(1, dims=2), tensor), dim=3) for tensor in blocks[1:])
    allowed = torch.ones(query.size(2), 1, 2 * WINDOW, dtype=torch.bool)
    allowed[0, :, :WINDOW] = False  # there is no block before the first
    heads = fast_attention(query[0], keys[0], values[0], allowed).flatten(1, 2)  # (H, T, K)
    joined: Tensor = attention.output(heads.transpose(0, 1).flatten(1)[None])
    return joined


def layers(width: int) -> dict[str, Layer]:
    attention = MultiHeadAttention(width, num_heads=8)
    recurrence = nn.LSTM(width, width, batch_first=True)
    convolution = nn.Conv1d(width, width, KERNEL, padding=KERNEL // 2)
    return {
        "self-attention": lambda x: attention(x, x, x),
        "LSTM": lambda x: recurrence(x)[0],
        f"convolution, k = {KERNEL}": lambda x: convolution(x.transpose(1, 2)),
        f"attention, window {WINDOW}": lambda x: windowed(attention, x),
    }


def measure(length: int, width: int) -> dict[str, float]:
    """Milliseconds of each layer on one sequence."""
    x = torch.randn(1, length, width)
    built = layers(width)
    best = dict.fromkeys(built, float("inf"))
    for _ in range(ROUNDS + 1):  # the first is a warm-up that is hardly ever the best
        for name, layer in built.items():
            start = time.perf_counter()
            layer(x)
            best[name] = min(best[name], 1000 * (time.perf_counter() - start))
    return best


def table(heads: list[str], columns: list[dict[str, float]]) -> str:
    lines = ["| milliseconds | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    lines += [f"| {name} | " + " | ".join(f"{column[name]:.2f}" for column in columns) + " |" for name in columns[0]]
    return "\n".join(lines)


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(table([f"n = {n}" for n in LENGTHS], [measure(n, FIXED_WIDTH) for n in LENGTHS]), "\n")
    print(table([f"d = {d}" for d in WIDTHS], [measure(FIXED_LENGTH, d) for d in WIDTHS]))


if __name__ == "__main__":
    main()
