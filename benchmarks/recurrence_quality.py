"""RNN against Transformer at equal minutes and equal weights: BLEU on Multi30k, in all and by length of the source.

    python benchmarks/recurrence_quality.py [--minutes 20] [--directions en-de de-en] [--only none …] [--json FILE]

Multi30k from --corpora (or HEADWISE_DATA); one BPE vocabulary of 4,000 for all. Each model is trained for `--minutes`
as by `headwise train`, with a schedule that ends with them and a tenth of it as warm-up, one after the other, and then
translates the test set of 2016 with a beam of 5. A run that has ended is kept in --work and is not run again. All of it
takes 8 times `--minutes`.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import kept_runs

from headwise.config.recipe import load_recipe, without_value
from headwise.config.schema import Recipe
from headwise.evaluation.metrics import bleu
from headwise.text.lines import read_lines
from headwise.workflows.load import load

# The recipe, and what is set otherwise so that all have 1.8 million weights.
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("multi30k-en-de-rnn", {"model.attention": "none", "model.hidden_dim": 336}),
    "additive": ("multi30k-en-de-rnn", {"model.attention": "additive"}),
    "general": ("multi30k-en-de-rnn", {"model.attention": "general"}),
    "transformer": ("multi30k-en-de", {"model.ff_dim": 256}),
}
EDGES = (8, 11, 14, 17)  # words of the source: up to 8, 9 to 11, …, more than 17
Figures = dict[str, Any]


def recipe_of(name: str, direction: str, minutes: float, corpora: Path) -> tuple[Recipe, Path]:
    recipe, changes = CONTESTANTS[name]
    source, target = direction.split("-")
    values = {
        **changes, "training.minutes": minutes, "training.warmup": 0.1, "training.validate_every": 10**6,
        "data.languages": [source, target],
    }  # fmt: skip
    for section, stem in (("data", "train"), ("data.validation", "val"), ("data.test", "test_2016_flickr")):
        values |= {
            f"{section}.source": str(corpora / "multi30k" / f"{stem}.{source}.gz"),
            f"{section}.target": str(corpora / "multi30k" / f"{stem}.{target}.gz"),
        }
    found, base = load_recipe(recipe, [f"{key}={json.dumps(value)}" for key, value in values.items()], corpora)
    # With minutes alone, `train` measures an update and plans a schedule that ends with the time.
    return without_value(found, "training.steps"), base


def run(name: str, direction: str, arguments: argparse.Namespace) -> Figures:
    recipe, base = recipe_of(name, direction, arguments.minutes, arguments.corpora)
    finished = kept_runs.trained(recipe, base, arguments.work / f"{direction}-{name}-{arguments.minutes:g}")
    source, target = direction.split("-")
    sources, references = (
        read_lines(base / f"multi30k/test_2016_flickr.{language}.gz") for language in (source, target)
    )
    translator = load(finished.model)
    outputs = [one.text for one in translator.translate(sources, beam=5)]
    groups: list[list[int]] = [[] for _ in (*EDGES, None)]
    for place, line in enumerate(sources):
        groups[sum(len(line.split()) > edge for edge in EDGES)].append(place)
    return {
        "updates": finished.step,
        "bleu": bleu(outputs, references, language=target).value,
        "signature": bleu(outputs, references, language=target).signature,
        "by_length": [
            bleu([outputs[i] for i in group], [references[i] for i in group], language=target).value for group in groups
        ],
        "sentences": [len(group) for group in groups],
    }


def show(results: dict[str, Figures]) -> str:
    """A table with a row per run."""
    bounds = [f"≤ {EDGES[0]}", *(f"{low + 1}–{high}" for low, high in pairwise(EDGES))]
    lines = [["", "updates", "BLEU", *bounds, f"> {EDGES[-1]} words"]]
    lines.append(["---"] * len(lines[0]))
    for name, found in results.items():
        lines.append(
            [name, f"{found['updates']:,}", *(f"{value:.1f}" for value in (found["bleu"], *found["by_length"]))]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = kept_runs.parser(__doc__, "recurrence", 20.0)
    parser.add_argument("--directions", nargs="+", default=["en-de", "de-en"], choices=["en-de", "de-en"])
    parser.add_argument("--only", nargs="+", default=list(CONTESTANTS), choices=list(CONTESTANTS))
    arguments = parser.parse_args()
    results: dict[str, Figures] = {}
    for direction in arguments.directions:
        for name in arguments.only:
            results[f"{direction}, {name}"] = run(name, direction, arguments)
            print(f"\n{show(results)}\n", flush=True)
            kept_runs.keep(results, arguments.json)


if __name__ == "__main__":
    main()
