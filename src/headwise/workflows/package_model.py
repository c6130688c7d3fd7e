"""Packages a finished run as a shipped model: at half the size, with an export for the fast engine, and evaluated.

    python -m headwise.workflows.package_model RUN NAME        (make ship RUN=… NAME=…)

The weights are stored as float16; where the task opens its models with the fast engine, and that can run the model, an
int8 export is made from these. The card gets the scores of each form on the recipe's validation and test data, and the
number of items that it answers like the run's own model. NAME must have an entry in shipped/about.toml.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headwise.bundle import shipped
from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle, open_bundle, read_json, write_config, write_directory
from headwise.bundle.run_files import FINISHED
from headwise.bundle.weights import load_model, save_model
from headwise.config.schema import Texts
from headwise.errors import HeadwiseError, ModelError, UsageError, WorkFailed
from headwise.interop.ctranslate2.export import cannot_export, export
from headwise.interop.ctranslate2.kept import KEPT, PRECISION
from headwise.tasks import find_task
from headwise.tasks.interface import Measured
from headwise.workflows.models import ShippedScore
from headwise.workflows.plot import read_course

LARGEST, LARGEST_TOGETHER = 4 * 2**20, 46_000_000  # bytes
LARGEST_TRANSLATOR = 8_000_000
# Length of the fast engine's position table: the longest source (500 tokens) plus room for longer translations.
POSITIONS = 640
ABOUT = "about.toml"
PARTS = ("validation", "test")
# Test data of which more than this share was trained on is named so: some models learn from all text that there is.
_TRAINED_ON = 0.5
_TORCH, _FAST = ("torch", "float16"), ("ctranslate2", "int8")  # an engine, and the precision of what it reads

Tell = Callable[[str], None]
Given = Mapping[str, str]  # a file for validation or test, in place of what the recipe names


@dataclass(frozen=True)
class Shipped:
    """The packaged model, and how close its stored weights are to the run's own model."""

    path: Path
    size: int  # bytes
    items: int  # of the first held-out set
    same: dict[str, int]  # by precision: answers equal to those of the run's model
    scores: tuple[ShippedScore, ...]


@dataclass(frozen=True)
class _HeldOut:
    """A validation or test set: its name, and its files by field of [data]."""

    name: str
    files: dict[str, list[str]]

    def scores(self, found: Measured, precision: str) -> list[ShippedScore]:
        over = found.overlap
        known = over is not None and over.checked > 0 and over.seen > _TRAINED_ON * over.checked
        name = f"{self.name} (trained on)" if known else self.name
        return [ShippedScore(name, metric, value, signature, precision) for metric, value, signature in found.scores]


def ship(
    run: Path, name: str, tell: Tell = lambda line: None, folder: Path | None = None, given: Given | None = None
) -> Shipped:
    """Packages RUN/model as `folder`/NAME, by default among the shipped models; replaces an older one."""
    folder = folder or shipped.FOLDER
    about = _about(folder, name)
    original = open_bundle(run / "model")
    sets = _held_out(original, Path(), given or {})
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / name
        _store(original, made)
        tell(f"stored as {' and '.join(label for _, label in _forms(open_bundle(made)))}: {_size(made) / 1e6:.2f} MB")
        _check_size(made, folder, name)
        card, result = _compare(original, made, sets, tell)
        card |= {"about": about, "training": _training(run)}
        write_config(made, replace(open_bundle(made), card=card))
        _check_size(made, folder, name)
        write_directory(folder / name, lambda new: _copy(made, new))
    return replace(result, path=folder / name, size=_size(folder / name))


def _about(folder: Path, name: str) -> dict[str, str]:
    with open(folder / ABOUT, "rb") as stream:
        known: dict[str, dict[str, str]] = tomllib.load(stream)
    if name not in known:
        raise UsageError(f"{folder / ABOUT} has no entry '{name}', only {', '.join(known)}; add one")
    return known[name]


def measure_again(name: str, data: Path, length_penalty: float | None = None, tell: Tell = lambda line: None) -> None:
    """Evaluates a shipped model again, after a change of the search or of about.toml; the weights do not change.

    `data` is the folder of the corpora; `length_penalty` becomes the model's default.
    """
    bundle = open_bundle(shipped.FOLDER / name)
    changed = {} if length_penalty is None else {"length_penalty": length_penalty}
    bundle = replace(bundle, decoding={**bundle.decoding, **changed})
    write_config(bundle.path, bundle)
    scores = []
    for engine, label in _forms(bundle):
        for texts in _held_out(bundle, data, {}):
            scores += texts.scores(_measure(bundle.path, texts, engine), label)
            tell(f"{name} {label} {texts.name}: {scores[-2].metric} {scores[-2].value:.2f}")
    about = _about(shipped.FOLDER, name)
    card = {**bundle.card, "about": about, "scores": [asdict(score) for score in scores]}
    write_config(bundle.path, replace(bundle, card=card))


def _held_out(bundle: Bundle, folder: Path, given: Given) -> list[_HeldOut]:
    """The validation and test data of the recipe in the card, whose paths are relative to `folder`."""
    data: Any = bundle.card.get("recipe", {}).get("data", {})
    fields = [field for field in Texts.model_fields if data.get(field)]
    sets = []
    for part in PARTS:
        if part in given:
            if len(fields) != 1:
                raise UsageError(f"--{part} is for models of one kind of file, not of {' and '.join(fields)}")
            files = {fields[0]: [given[part]]}
        else:
            named = data.get(part) or {}
            files = {field: [str(folder / file) for file in named[field]] for field in fields if named.get(field)}
        if files:
            sets.append(_HeldOut(Path(next(iter(files.values()))[0]).name.split(".")[0], files))
    if not sets:
        raise UsageError(
            f"the recipe of {bundle.path} has neither data.validation nor data.test; give --test FILE to evaluate it on"
        )
    return sets


def _store(original: Bundle, directory: Path) -> None:
    assets = Assets.load(original.path)
    save_model(
        directory, load_model(original), assets, family=original.family, task=original.task,
        languages=original.languages, decoding=original.decoding, card=_portable(original.card), precision="float16",
    )  # fmt: skip
    stored = open_bundle(directory)
    if _FAST in _forms(stored):
        export(stored, assets.tokenizers, directory / KEPT / PRECISION, PRECISION, positions=POSITIONS)


def _forms(bundle: Bundle) -> list[tuple[str, str]]:
    """The forms that a model is shipped in; what a user gets by default comes first."""
    fast = find_task(bundle.task_name).ships_fast and cannot_export(bundle) is None
    return [_FAST, _TORCH] if fast else [_TORCH]


def _portable(card: dict[str, Any]) -> dict[str, Any]:
    """Shortens the paths of the machine that it was trained on to the corpus' folder and file."""
    recipe = {**card["recipe"]}
    data = {**recipe["data"]}
    for part in PARTS:
        if data.get(part):
            data[part] = _shortened(data[part])
    model = {**recipe["model"]} if isinstance(recipe.get("model"), dict) else {}
    if model.get("from"):
        recipe["model"] = {**model, "from": Path(model["from"]).name}
    return {**card, "recipe": {**recipe, "data": _shortened(data)}}


def _shortened(part: Mapping[str, Any]) -> dict[str, Any]:
    paths = {field: part[field] for field in Texts.model_fields if part.get(field)}
    return {**part, **{field: ["/".join(Path(file).parts[-2:]) for file in files] for field, files in paths.items()}}


def _measure(model: Path, texts: _HeldOut, engine: str) -> Measured:
    bundle = open_bundle(model)
    return find_task(bundle.task_name).measure(bundle, texts.files, engine)


def _compare(original: Bundle, made: Path, sets: list[_HeldOut], tell: Tell) -> tuple[dict[str, Any], Shipped]:
    """Scores each form on every set; counts answers to the first that equal those of the run's own model."""
    own = _measure(original.path, sets[0], "torch").answers
    scores: list[ShippedScore] = []
    same: dict[str, int] = {}
    for engine, label in _forms(open_bundle(made)):
        for texts in sets:
            found = _measure(made, texts, engine)
            scores += texts.scores(found, label)
            tell(f"{label} {texts.name}: {', '.join(f'{metric} {value:.2f}' for metric, value, _ in found.scores)}")
            if texts is sets[0]:
                same[label] = sum(a == b for a, b in zip(own, found.answers, strict=True))
    count = len(own)
    if same["float16"] < 0.95 * count:
        raise ModelError(f"float16 changes {count - same['float16']} of {count} answers; store it as float32")
    stored = {"sentences": count, **{f"same_{label}": equal for label, equal in same.items()}}
    card = {**open_bundle(made).card, "scores": [asdict(score) for score in scores], "stored": stored}
    return card, Shipped(made, 0, count, same, tuple(scores))


def _training(run: Path) -> dict[str, Any]:
    """Returns how long the run took, and how fast it was."""
    finished = read_json(run / FINISHED)
    speeds = read_course(run, run.name).speed[1]
    return {
        "updates": finished["step"],
        "minutes": round(finished["seconds"] / 60, 1),
        "tokens_a_second": round(statistics.median(speeds)) if speeds else None,
    }


def largest(task: str) -> int:
    """How many bytes a shipped model of a task may have; translators came first, and may have more."""
    return LARGEST_TRANSLATOR if task == "translate" else LARGEST


def _check_size(made: Path, folder: Path, name: str) -> None:
    size, limit = _size(made), largest(open_bundle(made, verify=False).task_name)
    others = sum(_size(path) for path in folder.iterdir() if path.is_dir() and path.name != name)
    if size > limit:
        raise WorkFailed(f"{name} would have {size / 1e6:.2f} MB; a shipped model has at most {limit / 1e6:.0f}")
    if size + others > LARGEST_TOGETHER:
        raise WorkFailed(f"with {name} the shipped models would have more than {LARGEST_TOGETHER / 1e6:.0f} MB")


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m headwise.workflows.package_model", description=__doc__.split("\n")[0])
    parser.add_argument("run", metavar="RUN", type=Path, help="a finished run")
    parser.add_argument("name", metavar="NAME", help="an entry of shipped/about.toml")
    for part in PARTS:
        parser.add_argument(f"--{part}", metavar="FILE", help=f"evaluate on this instead of the recipe's data.{part}")
    asked = parser.parse_args(arguments)
    given = {part: file for part in PARTS if (file := getattr(asked, part))}
    try:
        made = ship(asked.run, asked.name, print, given=given)
    except HeadwiseError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{made.path}: {made.size / 1e6:.2f} MB")
    print(f"answers equal to those of the run's own model, of {made.items} held-out items:")
    print(f"    {', '.join(f'{label} {count}' for label, count in made.same.items())}")
    for score in made.scores:
        print(f"    {score.test:<20} {score.engine:<8} {score.metric:<6} {score.value:6.2f}  {score.signature}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
