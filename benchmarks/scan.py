"""SCAN (Lake and Baroni 2018): commands to actions, by an RNN with attention and a Transformer of the same size.

    python benchmarks/scan.py [--minutes 5] [--splits simple length] [--only rnn …] [--json FILE]

SCAN from --corpora (or HEADWISE_DATA): `simple` has commands of the same lengths in training and test, `length` has
longer action sequences in test (up to 48) than in training (up to 22). Tokens are words. Each model is trained for
`--minutes` with a schedule that ends with them, and then answers the test commands greedily; an
answer counts if every action is right. A run that has ended is kept in --work and is not run again.
"""

from __future__ import annotations

import argparse
from typing import Any

import kept_runs

from headwise.config.recipe import build_recipe
from headwise.config.schema import Recipe
from headwise.text.tables import read_table
from headwise.workflows.load import load

# Widths are chosen so that both have 0.8 million weights.
CONTESTANTS: dict[str, dict[str, Any]] = {
    "rnn": {"family": "rnn", "preset": "rnn-tiny", "hidden_dim": 240, "dropout": 0.1},
    "transformer": {"family": "transformer", "preset": "tiny", "norm": "pre", "ff_dim": 256, "dropout": 0.1},
}
LONGEST_IN_TRAINING = 22  # actions, in the split `length`
Figures = dict[str, Any]


def recipe_of(name: str, split: str, minutes: float) -> Recipe:
    return build_recipe(
        {
            "data": {
                "source": f"scan/{split}-train.csv.gz", "fields": ["source", "target"],
                "filters": {"max_ratio": 1000.0},
            },
            "tokenizer": {"kind": "word", "size": 100, "shared": False},
            "model": {**CONTESTANTS[name], "tie": "target"},
            "training": {
                "minutes": minutes, "batch_tokens": 1024, "schedule": "cosine", "learning_rate": 2e-3, "warmup": 0.05,
                "label_smoothing": 0.0, "clip_norm": 1.0, "ema": 0.999, "log_every": 100, "save_every": 1000,
            },
            "decoding": {"beam": 1, "max_extra": 60},
        }
    )  # fmt: skip


def run(name: str, split: str, arguments: argparse.Namespace) -> Figures:
    folder = arguments.work / f"{split}-{name}-{arguments.minutes:g}"
    finished = kept_runs.trained(recipe_of(name, split, arguments.minutes), arguments.corpora, folder)
    table = read_table(arguments.corpora / f"scan/{split}-test.csv.gz", [("source", "target")])
    rows = [row.values for row in table]
    answers = load(finished.model, engine="torch").translate([command for command, _ in rows], beam=1)
    right = [answer.text == actions for answer, (_, actions) in zip(answers, rows, strict=True)]
    lengths = [len(actions.split()) for _, actions in rows]
    seen = [one for one, length in zip(right, lengths, strict=True) if length <= LONGEST_IN_TRAINING]
    return {
        "updates": finished.step, "exact": 100 * sum(right) / len(right), "commands": len(right),
        "exact_up_to_22": 100 * sum(seen) / len(seen) if seen else None,
    }  # fmt: skip


def main() -> None:
    parser = kept_runs.parser(__doc__, "scan", 5.0)
    parser.add_argument("--splits", nargs="+", default=["simple", "length"], choices=["simple", "length"])
    parser.add_argument("--only", nargs="+", default=list(CONTESTANTS), choices=list(CONTESTANTS))
    arguments = parser.parse_args()
    results: dict[str, Figures] = {}
    for split in arguments.splits:
        for name in arguments.only:
            results[f"{split}, {name}"] = run(name, split, arguments)
            print(f"{split}, {name}: {results[f'{split}, {name}']}", flush=True)
            kept_runs.keep(results, arguments.json)


if __name__ == "__main__":
    main()
