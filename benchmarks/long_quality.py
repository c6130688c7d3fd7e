"""Attention to long texts at equal minutes: what each kind learns in the time that it needs.

    python benchmarks/long_quality.py [--minutes 20] [--only listops imdb-bytes imdb-words wikitext2 shakespeare]
                                      [--kinds exact longformer …] [--json FILE]

Classifiers of `tiny` width (2 layers of 128) with exact, window, block-sparse and random-feature attention: ListOps of
headwise.text.listops (500 to 2,000 tokens, made in --work) and imdb (--corpora or HEADWISE_DATA) as bytes and as
subwords. Language models: the recipes wikitext2-lm and wikitext2-xl, and both families on the characters of
Shakespeare, whose last tenth is held out. Every run trains for `--minutes`, with a schedule that ends with them, one
after the other. A run that has ended is kept in --work and is not run again.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any

import kept_runs

from headwise.config.recipe import build_recipe, load_recipe, own_values
from headwise.config.schema import Recipe
from headwise.text import listops
from headwise.workflows.evaluate import evaluate

Figures = dict[str, Any]
KINDS: dict[str, dict[str, Any]] = {
    "exact": {"family": "bert", "preset": "bert-tiny", "num_heads": 4, "ff_dim": 256, "norm": "pre"},
    "longformer": {"family": "longformer", "preset": "longformer-tiny", "norm": "pre"},
    "bigbird": {"family": "bigbird", "preset": "bigbird-tiny", "norm": "pre"},
    "performer": {"family": "performer", "preset": "performer-tiny", "norm": "pre"},
}
TOKENS: dict[str, tuple[dict[str, Any], int]] = {  # tokenizer, and the longest input in tokens
    "listops": ({"kind": "word", "size": 100}, 2048),
    "imdb-bytes": ({"kind": "byte"}, 4096),
    "imdb-words": ({"kind": "bpe", "size": 8000}, 1024),
}
MODELS = {"lm": {"family": "lm", "positions": "rotary"}, "xl": {"family": "xl", "segment": 128, "memory": 128}}
HELD_OUT = 0.1  # of Shakespeare: its end
CLASSIFIED, WRITTEN = tuple(TOKENS), ("wikitext2", "shakespeare")


def classifier(name: str, kind: str, arguments: argparse.Namespace) -> Recipe:
    """The recipe of a classifier; only the attention differs between kinds."""
    tokenizer, longest = TOKENS[name]
    folder, ending = (listops_files(arguments), "csv") if name == "listops" else (arguments.corpora / "imdb", "csv.gz")
    model = {**KINDS[kind], "max_length": longest, "dropout": 0.1 if name == "listops" else 0.2}
    if kind != "performer":
        model["attention_dropout"] = 0.0
    return build_recipe(
        {
            "task": "classify",
            "data": {
                "table": str(folder / f"train.{ending}"), "validation": {"table": str(folder / f"val.{ending}")},
                "test": {"table": str(folder / f"test.{ending}")}, "filters": {"max_characters": 30000},
            },
            "tokenizer": tokenizer,
            "model": model,
            "training": {
                "minutes": arguments.minutes, "batch_tokens": 16384, "optimizer": "adamw", "weight_decay": 0.05,
                "schedule": "cosine", "learning_rate": 1e-3, "warmup": 0.1, "clip_norm": 1.0, "ema": 0.99,
                "best": "accuracy",
            },
        }
    )  # fmt: skip


def listops_files(arguments: argparse.Namespace) -> Path:
    folder: Path = arguments.work / "listops"
    if not (folder / "test.csv").is_file():
        listops.main([str(folder)])
    return folder


def language_model(name: str, kind: str, arguments: argparse.Namespace) -> Recipe:
    """The shipped recipe of the corpus, with the family's settings."""
    minutes = {"minutes": arguments.minutes, "warmup": 0.05}
    if name == "wikitext2":
        recipe, _ = load_recipe(f"wikitext2-{kind}", (), arguments.corpora)
        values = own_values(recipe)
    else:
        recipe, _ = load_recipe("shakespeare-char", (), arguments.corpora)
        values = own_values(recipe)
        texts = shakespeare_files(arguments)
        values["data"] = {"text": str(texts[0]), "validation": {"text": str(texts[1])}, "languages": ["en"]}
        shared = {"norm": "pre", "dropout": 0.1, "attention_dropout": 0.0}
        values["model"] = {**MODELS[kind], **shared, **({"max_length": 256} if kind == "lm" else {})}
    values["training"] = {key: value for key, value in values["training"].items() if key != "steps"} | minutes
    return build_recipe(values)


def shakespeare_files(arguments: argparse.Namespace) -> tuple[Path, Path]:
    with gzip.open(arguments.corpora / "shakespeare" / "input.txt.gz", "rt", encoding="utf-8") as stream:
        lines = stream.readlines()
    cut = round((1 - HELD_OUT) * len(lines))
    files = arguments.work / "shakespeare.train.txt", arguments.work / "shakespeare.val.txt"
    for file, part in zip(files, (lines[:cut], lines[cut:]), strict=True):
        file.write_text("".join(part), encoding="utf-8")
    return files


def run(name: str, kind: str, arguments: argparse.Namespace) -> Figures:
    recipe = (classifier if name in CLASSIFIED else language_model)(name, kind, arguments)
    finished = kept_runs.trained(recipe, arguments.corpora, arguments.work / f"{name}-{kind}-{arguments.minutes:g}")
    figures: Figures = {"updates": finished.step, "seconds": finished.seconds, "best": finished.best}
    if name in CLASSIFIED:
        scores = evaluate(str(finished.model), table=list(recipe.data.test.table))
        figures["test accuracy"] = 100 * scores.confusion.accuracy
    return figures


def main() -> None:
    parser = kept_runs.parser(__doc__, "long", 20.0)
    parser.add_argument("--only", nargs="+", default=[*CLASSIFIED, *WRITTEN], choices=[*CLASSIFIED, *WRITTEN])
    parser.add_argument("--kinds", nargs="+", default=[*KINDS, *MODELS], choices=[*KINDS, *MODELS])
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    results: dict[str, Figures] = {}
    for name in arguments.only:
        for kind in KINDS if name in CLASSIFIED else MODELS:
            if kind in arguments.kinds:
                results[f"{name}, {kind}"] = run(name, kind, arguments)
                print(f"{name}, {kind}: {results[f'{name}, {kind}']}", flush=True)
                kept_runs.keep(results, arguments.json)


if __name__ == "__main__":
    main()
