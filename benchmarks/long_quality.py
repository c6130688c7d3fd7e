"""Attention to long texts at equal minutes: what each kind learns in the time that it needs.

    python benchmarks/long_quality.py [--minutes 20] [--only listops imdb-bytes imdb-words wikitext2 shakespeare]
                                      [--kinds exact longformer …] [--json FILE]

Classifiers of `tiny` width (2 layers of 128) with exact, window, block-sparse and random-feature attention, by the
recipes listops (its files are made in --work) and imdb (--corpora or HEADWISE_DATA; as bytes and as subwords). Language
models by the recipes wikitext2-lm, wikitext2-xl, shakespeare-char and shakespeare-xl; the last tenth of Shakespeare is
held out. Their perplexity is measured for several numbers of tokens that a prediction may look back at least. Every
run trains for `--minutes`, with a schedule that ends with them, one after the other. A run that has ended is kept in
--work and is not run again.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any

import kept_runs

from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import load_model
from headwise.config.recipe import build_recipe, load_recipe, own_values, without_value
from headwise.config.schema import Recipe
from headwise.evaluation.language_model import text_perplexity
from headwise.text import listops
from headwise.text.corpus import read_lines
from headwise.text.tokenizer import TokenizerPair
from headwise.workflows.evaluate import evaluate

Figures = dict[str, Any]
# Only the attention differs; all have 2 layers of 128, heads of 32 and a feed-forward of 256.
KINDS: dict[str, dict[str, Any]] = {
    "exact": {"family": "bert", "preset": "bert-tiny", "num_heads": 4, "ff_dim": 256, "attention_dropout": 0.0},
    **{family: {"family": family, "preset": f"{family}-tiny"} for family in ("longformer", "bigbird", "performer")},
}
# The recipe of a corpus, and what is set otherwise.
CLASSIFIED: dict[str, tuple[str, dict[str, Any]]] = {
    "listops": ("listops", {}),
    "imdb-bytes": ("imdb", {"tokenizer": {"kind": "byte"}, "model": {"max_length": 4096}}),
    "imdb-words": ("imdb", {}),
}
# The recipes of both kinds of language model.
WRITTEN = {
    "wikitext2": {"lm": "wikitext2-lm", "xl": "wikitext2-xl"},
    "shakespeare": {"lm": "shakespeare-char", "xl": "shakespeare-xl"},
}
# What a prediction may look back at least, in tokens: windows of a plain model overlap by that, the other remembers it.
MODELS = {"lm": (0, 128), "xl": (0, 128, 384)}
VALIDATE_EVERY = 300  # updates of a classifier: to read a thousand long texts takes up to half a minute
HELD_OUT = 0.1  # of Shakespeare: its end


def classifier(name: str, kind: str, arguments: argparse.Namespace) -> tuple[Recipe, Path]:
    """The recipe of a classifier with another attention."""
    recipe, changes = CLASSIFIED[name]
    base = listops_files(arguments).parent if recipe == "listops" else arguments.corpora
    settings = [f"training.minutes={arguments.minutes:g}", f"training.validate_every={VALIDATE_EVERY}"]
    values = own_values(load_recipe(recipe, settings, base)[0])
    shared = {key: value for key, value in values["model"].items() if key not in ("family", "preset")}
    values["model"] = {**KINDS[kind], **shared, **changes.get("model", {})}
    return build_recipe({**values, "tokenizer": changes.get("tokenizer", values["tokenizer"])}), base


def listops_files(arguments: argparse.Namespace) -> Path:
    folder: Path = arguments.work / "listops"
    if not (folder / "test.csv").is_file():
        listops.main([str(folder)])
    return folder


def language_model(name: str, kind: str, arguments: argparse.Namespace) -> tuple[Recipe, Path]:
    """The recipe of the corpus for a language model, with a schedule for the minutes."""
    changes = [f"training.minutes={arguments.minutes:g}", "training.warmup=0.05"]
    if name == "shakespeare":
        texts = shakespeare_files(arguments)
        changes += [f"data.text={texts[0]}", f"data.validation.text={texts[1]}"]
    recipe, base = load_recipe(WRITTEN[name][kind], changes, arguments.corpora)
    return without_value(recipe, "training.steps"), base


def shakespeare_files(arguments: argparse.Namespace) -> tuple[Path, Path]:
    with gzip.open(arguments.corpora / "shakespeare" / "input.txt.gz", "rt", encoding="utf-8") as stream:
        lines = stream.readlines()
    cut = round((1 - HELD_OUT) * len(lines))
    files = arguments.work / "shakespeare.train.txt", arguments.work / "shakespeare.val.txt"
    for file, part in zip(files, (lines[:cut], lines[cut:]), strict=True):
        file.write_text("".join(part), encoding="utf-8")
    return files


def run(name: str, kind: str, arguments: argparse.Namespace) -> Figures:
    recipe, base = (classifier if name in CLASSIFIED else language_model)(name, kind, arguments)
    finished = kept_runs.trained(recipe, base, arguments.work / f"{name}-{kind}-{arguments.minutes:g}")
    figures: Figures = {"updates": finished.step, "seconds": finished.seconds, "best": finished.best}
    if name in CLASSIFIED:
        scores = evaluate(str(finished.model), table=[str(base / file) for file in recipe.data.test.table])
        figures["test accuracy"] = 100 * scores.confusion.accuracy
    else:
        figures["perplexity"] = by_reach(finished.model, str(base / recipe.data.validation.text[0]), MODELS[kind])
    return figures


def by_reach(directory: Path, file: str, reaches: tuple[int, ...]) -> dict[str, float]:
    """The perplexity per token of a text, by what each prediction may look back at least."""
    model, tokenizer = load_model(open_bundle(directory)), TokenizerPair.load(directory).target
    lines = [line.text for line in read_lines(file)]
    found = {}
    for reach in reaches:
        if model.segment is not None:
            model.memory, stride = reach, 0
        else:
            stride = model.max_length - reach
        found[str(reach)] = text_perplexity(model, tokenizer, lines, stride=stride).value
    return found


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
