"""What a newcomer gets: `headwise train` with data paths and minutes only, beside the tuned recipe at equal minutes.

    python benchmarks/first_try.py [--minutes 10] [--only multi30k-en-de …] [--tuned] [--json FILE]

The corpora are in --corpora (or HEADWISE_DATA). Each row trains one model as a newcomer would: files for training and
validation, and nothing else said but the minutes; then it is evaluated on the validation text with its own settings for
decoding. `--tuned` trains the shipped recipe of that corpus instead, with a schedule for the same minutes. Rows that
have been measured are kept in --work and not run again, so that they can be run one at a time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w
from results import Result

import headwise.config

RECIPES = Path(headwise.config.__file__).parent / "recipes"
HELD_OUT = 0.1  # of a text that has no validation file: its end
TUNED = "tuned recipe, equal minutes"


@dataclass(frozen=True)
class Try:
    """One row: a corpus, what is wanted of it, and the shipped recipe to compare with."""

    what: str
    training: Mapping[str, str]  # source and target, or text
    validation: Mapping[str, str] = field(default_factory=dict)  # empty: the end of the text is held out
    recipe: str = ""
    wanted: float = 0.0
    unit: str = "BLEU"
    said: tuple[str, ...] = ()  # settings that the newcomer gives beside the files


def pairs(corpus: str, source: str, target: str, recipe: str, wanted: float) -> Try:
    files = {
        part: {"source": f"{corpus}/{part}.{source}.gz", "target": f"{corpus}/{part}.{target}.gz"}
        for part in ("train", "val")
    }
    return Try(f"{corpus} {source}→{target}", files["train"], files["val"], recipe, wanted)


TRIES = {
    "multi30k-en-de": pairs("multi30k", "en", "de", "multi30k-en-de", 24.0),
    "multi30k-fr-en": pairs("multi30k", "fr", "en", "multi30k-de-en", 28.0),
    "tatoeba-zh-en": pairs("tatoeba-zh-en", "zh", "en", "tatoeba-zh-en", 12.0),
    "shakespeare": Try(
        "Shakespeare", {"text": "shakespeare/input.txt.gz"}, {}, "shakespeare-char", 2.35, "bits per character"
    ),
    "shakespeare-char": Try(
        "Shakespeare, characters as tokens", {"text": "shakespeare/input.txt.gz"}, {}, "shakespeare-char", 2.35,
        "bits per character", ("tokenizer.kind=char",),
    ),
}  # fmt: skip


def files_of(one: Try, arguments: argparse.Namespace) -> tuple[dict[str, str], dict[str, str]]:
    """Absolute paths of the training and validation text; a text without the latter is cut in two."""
    training = {name: str(arguments.corpora / path) for name, path in one.training.items()}
    if one.validation:
        return training, {name: str(arguments.corpora / path) for name, path in one.validation.items()}
    with gzip.open(training["text"], "rt", encoding="utf-8") as stream:
        lines = stream.readlines()
    cut = round((1 - HELD_OUT) * len(lines))
    parts = {"train": lines[:cut], "val": lines[cut:]}
    paths = {part: arguments.work / f"{Path(training['text']).parent.name}.{part}.txt" for part in parts}
    for part, path in paths.items():
        path.write_text("".join(parts[part]), encoding="utf-8")
    return {"text": str(paths["train"])}, {"text": str(paths["val"])}


def newcomer(one: Try, training: Mapping[str, str], validation: Mapping[str, str], minutes: float) -> list[str]:
    """The arguments of `headwise train`: files, minutes, and nothing else."""
    given = [part for name, path in training.items() for part in (f"--{name}", path)]
    settings = [*(f"data.validation.{name}={path}" for name, path in validation.items()), f"training.minutes={minutes}"]
    return [*given, *(part for setting in (*settings, *one.said) for part in ("--set", setting))]


def tuned(
    one: Try, training: Mapping[str, str], validation: Mapping[str, str], minutes: float, file: Path
) -> list[str]:
    """Writes the shipped recipe for these files and minutes; its schedule ends with them."""
    values = tomllib.loads((RECIPES / f"{one.recipe}.toml").read_text(encoding="utf-8"))
    languages = [Path(path).name.split(".")[1] for path in training.values() if "." in Path(path).stem]
    values["data"] = {**training, "validation": dict(validation)}
    values["data"] |= {"languages": languages} if len(languages) == 2 else {}
    values["training"] = {k: v for k, v in values["training"].items() if k != "steps"} | {"minutes": minutes}
    file.write_text(tomli_w.dumps(values), encoding="utf-8")
    return [str(file)]


def run_headwise(arguments: Sequence[str], **options: Any) -> str:
    command = [sys.executable, "-m", "headwise", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def measure(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Trains and evaluates one row; the figure is kept in the work folder."""
    one, stem = TRIES[name], f"{name}-{'tuned' if arguments.tuned else 'first'}-{arguments.minutes:g}"
    training, validation = files_of(one, arguments)
    run = arguments.work / stem
    if arguments.tuned:
        given = tuned(one, training, validation, arguments.minutes, run.with_suffix(".toml"))
    else:
        given = newcomer(one, training, validation, arguments.minutes)
    run_headwise(["train", *given, "--output", str(run)])
    parts = {"source": "--source", "target": "--reference", "text": "--text"}
    asked = [part for side, path in validation.items() for part in (parts[side], path)]
    scores = json.loads(run_headwise(["evaluate", "--model", str(run / "model"), *asked, "--json"]))
    finished = json.loads((run / "finished.json").read_text(encoding="utf-8"))
    return {"figure": figure(scores, one.unit), "updates": finished["step"], "seconds": finished["seconds"],
            "verdict": finished["verdict"]}  # fmt: skip


def figure(scores: Mapping[str, Any], unit: str) -> float:
    if unit == "BLEU":
        return float(next(score["value"] for score in scores["scores"] if score["name"] == "BLEU"))
    return float(scores["bits_per_character"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="of training, for each run")
    parser.add_argument("--only", nargs="+", default=list(TRIES), choices=list(TRIES))
    parser.add_argument("--tuned", action="store_true", help="train the shipped recipes instead")
    parser.add_argument("--corpora", type=Path, default=Path(os.environ.get("HEADWISE_DATA", ".")))
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "headwise" / "first_try")
    parser.add_argument("--json", type=Path, help="write the rows into this file")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    kept = arguments.work / f"figures-{arguments.minutes:g}.json"
    figures: dict[str, dict[str, Any]] = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    side = "tuned" if arguments.tuned else "first"
    for name in arguments.only:
        if side not in figures.setdefault(name, {}):
            figures[name][side] = measure(name, arguments)
            kept.write_text(json.dumps(figures, indent=1), encoding="utf-8")
        print(f"{name}, {side}: {figures[name][side]}", flush=True)
    report(figures, arguments)


def report(figures: Mapping[str, Mapping[str, Any]], arguments: argparse.Namespace) -> None:
    settings = {"minutes": arguments.minutes, "evaluated on": "validation text", "decoding": "each model's own"}
    result = Result("first_try", "The first try: data paths and minutes only", settings=settings)
    for name, found in figures.items():
        if "first" not in found:
            continue
        one, first = TRIES[name], found["first"]
        peers = {TUNED: found["tuned"]["figure"]} if "tuned" in found else {}
        sign, better = ("≥", "higher") if one.unit == "BLEU" else ("≤", "lower")
        note = f"wanted: {sign} {one.wanted:g}; {first['updates']:,} updates"
        result.add(one.what, one.unit, first["figure"], peers, better=better, note=note)  # type: ignore[arg-type]
    result.save(arguments.json)


if __name__ == "__main__":
    main()
