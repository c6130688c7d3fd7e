"""One T5 for four directions beside a Transformer of its size for each one: BLEU on Multi30k at equal minutes.

    python benchmarks/mixture_quality.py [--minutes 85] [--only t5 de-en …] [--threads 2] [--json FILE]

Multi30k from --corpora (or HEADWISE_DATA). The T5 is the recipe multi30k-t5 (de→en, en→de, en→fr, fr→en, vocabulary of
6,000); each Transformer is the preset `tiny` with the same vocabulary size, schedule and batches, trained on one
direction with Adam at the rate of the recipes multi30k-…. Every run trains for `--minutes`, with a schedule that ends
with them, one after the other, and then translates the test set of 2016 with a beam of 5. A run that has ended is kept
in --work and is not run again. All of it takes five times `--minutes`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import kept_runs

from headwise.config.recipe import build_recipe, load_recipe, own_values
from headwise.config.schema import Recipe
from headwise.evaluation.metrics import bleu
from headwise.text.lines import read_lines
from headwise.workflows.load import load

RECIPE, ONE = "multi30k-t5", "t5"
DIRECTIONS = ("de-en", "en-de", "en-fr", "fr-en")
Figures = dict[str, Any]


def recipe_of(name: str, minutes: float, corpora: Path, threads: int) -> tuple[Recipe, Path]:
    """The recipe itself, or one direction of it for a Transformer."""
    recipe, base = load_recipe(RECIPE, [f"training.minutes={minutes:g}", f"training.threads={threads}"], corpora)
    if name == ONE:
        return recipe, base
    values = own_values(recipe)
    (part,) = (dict(part) for part in values["data"]["mixture"] if "-".join(part["languages"]) == name)
    part.pop("prefix")
    model = {"preset": "tiny", "norm": "pre", "dropout": 0.25, "attention_dropout": 0.0, "activation_dropout": 0.0}
    training = {**values["training"], "optimizer": "adam", "learning_rate": 2.5e-3}
    return build_recipe({**values, "data": part, "model": model, "training": training}), base


def run(name: str, arguments: argparse.Namespace) -> dict[str, Figures]:
    """Trains, and scores each direction that the model has."""
    recipe, base = recipe_of(name, arguments.minutes, arguments.corpora, arguments.threads)
    finished = kept_runs.trained(recipe, base, arguments.work / f"{name}-{arguments.minutes:g}")
    found = {}
    for direction in DIRECTIONS if name == ONE else (name,):
        source, target = direction.split("-")
        sources, references = (
            read_lines(base / f"multi30k/test_2016_flickr.{language}.gz") for language in (source, target)
        )
        options = {"languages": (source, target)} if name == ONE else {}
        outputs = [one.text for one in load(finished.model, precision="float32", **options).translate(sources, beam=5)]
        score = bleu(outputs, references, language=target)
        found[direction] = {"updates": finished.step, "bleu": score.value, "signature": score.signature}
    return found


def show(results: dict[str, dict[str, Figures]]) -> str:
    """A table with a row per direction: the one model, and the one of its own."""
    lines = [["", "one T5", "a Transformer each"], ["---"] * 3]
    for direction in DIRECTIONS:
        both = [results.get(name, {}).get(direction) for name in (ONE, direction)]
        lines.append([direction, *("not run" if one is None else f"{one['bleu']:.1f}" for one in both)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = kept_runs.parser(__doc__, "mixture", 85.0)
    parser.add_argument("--only", nargs="+", default=[ONE, *DIRECTIONS], choices=[ONE, *DIRECTIONS])
    parser.add_argument("--threads", type=int, default=0, help="CPU cores; 0: all")
    arguments = parser.parse_args()
    results: dict[str, dict[str, Figures]] = {}
    for name in arguments.only:
        results[name] = run(name, arguments)
        print(f"\n{show(results)}\n", flush=True)
        kept_runs.keep(results, arguments.json)


if __name__ == "__main__":
    main()
