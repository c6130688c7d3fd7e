"""How far FAVOR+ is from exact attention, against its number of features: the table of docs/long.md, in Markdown.

    python benchmarks/favor_error.py [--features 16 64 …] [--deviations 0.25 0.5 1] [--draws 256]

Queries, keys and values are Gaussian; the larger the deviation of queries and keys, the more attention looks at few
tokens. The error of a draw of all tensors and features is the root mean square of (FAVOR+ - exact) over the output's
elements. Each column has the median over draws: a few draws have errors several times as large, which would decide a
mean. The first column is the median size of the exact output itself. Draws are seeded.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor

from headwise.nn.attention import scaled_dot_product_attention
from headwise.nn.favor import orthogonal_features
from headwise.nn.kernels.linear_attention import linear_attention

TOKENS, HEAD_DIM = 64, 16


def median_size(draws: list[Tensor]) -> float:
    """The median over draws of each one's root mean square."""
    return float(torch.stack(draws).square().flatten(1).mean(dim=1).sqrt().median())


def errors(deviation: float, features: list[int], draws: int) -> tuple[float, list[float]]:
    """The size of the exact output, and the error for each number of features."""
    torch.manual_seed(1)
    exact, wrong = [], [list[Tensor]() for _ in features]
    for _ in range(draws):
        query, key = (deviation * torch.randn(1, TOKENS, HEAD_DIM) for _ in range(2))
        value = torch.randn(1, TOKENS, HEAD_DIM)
        exact.append(scaled_dot_product_attention(query, key, value)[0])
        for count, found in zip(features, wrong, strict=True):
            projection = orthogonal_features(count, HEAD_DIM).mT * HEAD_DIM**-0.25
            found.append(linear_attention(query, key, value, projection, None) - exact[-1])
    return median_size(exact), [median_size(found) for found in wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[16, 64, 256, 1024, 4096])
    parser.add_argument("--deviations", type=float, nargs="+", default=[0.25, 0.5, 1.0])
    parser.add_argument("--draws", type=int, default=256)
    arguments = parser.parse_args()
    heads = ["deviation", "exact output", *(f"{count:,} features" for count in arguments.features)]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for deviation in arguments.deviations:
        size, found = errors(deviation, arguments.features, arguments.draws)
        print(f"| {deviation:g} | {size:.2f} | {' | '.join(f'{error:.4f}' for error in found)} |")


if __name__ == "__main__":
    main()
