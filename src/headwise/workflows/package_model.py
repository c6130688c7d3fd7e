"""Packages a finished run as a shipped model: at half the size, with an export for the fast engine, and evaluated.

    python -m headwise.workflows.package_model RUN NAME        (make ship RUN=… NAME=…)

The weights are stored as float16, and the int8 export is made from these. The card gets the scores of both, and the
number of validation sentences that they translate like the run's own model. NAME must have an entry in
shipped/about.toml.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headwise.bundle import shipped
from headwise.bundle.directory import Bundle, open_bundle, read_json, write_config, write_directory
from headwise.bundle.run_files import FINISHED
from headwise.bundle.weights import open_model, save_model
from headwise.errors import HeadwiseError, ModelError, UsageError, WorkFailed
from headwise.evaluation.metrics import corpus_scores
from headwise.interop.ctranslate2.export import export
from headwise.interop.ctranslate2.kept import KEPT, PRECISION
from headwise.text.lines import read_lines
from headwise.workflows.models import ShippedScore
from headwise.workflows.plot import read_course
from headwise.workflows.translate import open_translator

LARGEST, LARGEST_TOGETHER = 8_000_000, 30_000_000  # bytes
# Length of the fast engine's position table: the longest source (500 tokens) plus room for longer translations.
POSITIONS = 640
ABOUT = "about.toml"
_SIDES = ("source", "target")
_FORMS = (("ctranslate2", "int8"), ("torch", "float16"))  # an engine, and the precision of the weights that it reads

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Shipped:
    """The packaged model, and how close its stored weights are to the run's own model."""

    path: Path
    size: int  # bytes
    sentences: int  # of validation
    same_float16: int  # translations equal to those of the run's model
    same_int8: int
    scores: tuple[ShippedScore, ...]


@dataclass(frozen=True)
class _Texts:
    """A validation or test set: its name, sources and references."""

    name: str
    sources: list[str]
    references: list[str]

    def scores(self, translations: Sequence[str], language: str, engine: str) -> list[ShippedScore]:
        found = corpus_scores(translations, self.references, language=language, metrics=("bleu", "chrf"))
        return [ShippedScore(self.name, score.name, score.value, score.signature, engine) for score in found]


def ship(run: Path, name: str, tell: Tell = lambda line: None, folder: Path | None = None) -> Shipped:
    """Packages RUN/model as `folder`/NAME, by default among the shipped models; replaces an older one."""
    folder = folder or shipped.FOLDER
    about = _about(folder, name)
    original = open_bundle(run / "model")
    if original.task_name != "translate":
        raise UsageError(
            f"{run} has a model of the task '{original.task_name}'; only translation models can be shipped"
        )
    sets = _held_out(original, Path())
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / name
        _store(original, made)
        tell(f"stored as float16 and int8: {_size(made) / 1e6:.2f} MB")
        card, result = _measure(original, made, sets, tell)
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
    for engine, label in _FORMS:
        for texts in _held_out(bundle, data):
            scores += texts.scores(_translate(bundle.path, engine, texts.sources), bundle.languages[-1], label)
            tell(f"{name} {label} {texts.name}: {scores[-2].metric} {scores[-2].value:.2f}")
    about = _about(shipped.FOLDER, name)
    card = {**bundle.card, "about": about, "scores": [asdict(score) for score in scores]}
    write_config(bundle.path, replace(bundle, card=card))


def _held_out(bundle: Bundle, folder: Path) -> list[_Texts]:
    """Reads the validation and test texts of the recipe in the card, whose paths are relative to `folder`."""
    data: Any = bundle.card.get("recipe", {}).get("data", {})
    sets = []
    for part in ("validation", "test"):
        sides = data.get(part, {})
        if not sides.get("source"):
            raise UsageError(
                f"the recipe of {bundle.path} has no data.{part}, which is needed to evaluate a shipped model"
            )
        sources, references = (
            [line for file in sides[side] for line in read_lines(str(folder / file))] for side in _SIDES
        )
        sets.append(_Texts(Path(sides["source"][0]).name.split(".")[0], sources, references))
    return sets


def _store(original: Bundle, directory: Path) -> None:
    _, model, tokenizers = open_model(original.path)
    save_model(
        directory, model, tokenizers, family=original.family, task=original.task, languages=original.languages,
        decoding=original.decoding, card=_portable(original.card), precision="float16",
    )  # fmt: skip
    export(open_bundle(directory), tokenizers, _fast(directory), PRECISION, positions=POSITIONS)


def _fast(directory: Path) -> Path:
    return directory / KEPT / PRECISION


def _portable(card: dict[str, Any]) -> dict[str, Any]:
    """Shortens the paths of the machine that it was trained on to the corpus' folder and file."""
    recipe = {**card["recipe"]}
    data = {**recipe["data"]}
    for part in (data, data["validation"], data["test"]):
        for side in (*_SIDES, "text"):
            if part.get(side):
                part[side] = ["/".join(Path(file).parts[-2:]) for file in part[side]]
    return {**card, "recipe": {**recipe, "data": data}}


def _measure(original: Bundle, made: Path, sets: list[_Texts], tell: Tell) -> tuple[dict[str, Any], Shipped]:
    """Scores both precisions on every set; counts validation translations equal to those of the run's own model."""
    language = original.languages[-1]
    validation = sets[0]
    own = _translate(original.path, "torch", validation.sources)
    scores: list[ShippedScore] = []
    same = {}
    for engine, label in _FORMS:
        for texts in sets:
            translations = _translate(made, engine, texts.sources)
            scores += texts.scores(translations, language, label)
            tell(f"{label} {texts.name}: {scores[-2].metric} {scores[-2].value:.2f}")
            if texts is validation:
                same[label] = sum(a == b for a, b in zip(own, translations, strict=True))
    count = len(validation.sources)
    if same["float16"] < 0.95 * count:
        raise ModelError(f"float16 changes {count - same['float16']} of {count} translations; store it as float32")
    stored = {"sentences": count, "same_float16": same["float16"], "same_int8": same["int8"]}
    card = {**open_bundle(made).card, "scores": [asdict(score) for score in scores], "stored": stored}
    return card, Shipped(made, 0, count, same["float16"], same["int8"], tuple(scores))


def _translate(model: Path, engine: str, sources: Sequence[str]) -> list[str]:
    translator = open_translator(model, engine, scores="none")
    return [" ".join(translation.text.split("\n")) for translation in translator.translate(sources)]


def _training(run: Path) -> dict[str, Any]:
    """Returns how long the run took, and how fast it was."""
    finished = read_json(run / FINISHED)
    speeds = read_course(run, run.name).speed[1]
    return {
        "updates": finished["step"],
        "minutes": round(finished["seconds"] / 60, 1),
        "tokens_a_second": round(statistics.median(speeds)) if speeds else None,
    }


def _check_size(made: Path, folder: Path, name: str) -> None:
    size = _size(made)
    others = sum(_size(path) for path in folder.iterdir() if path.is_dir() and path.name != name)
    if size > LARGEST:
        raise WorkFailed(f"{name} would have {size / 1e6:.2f} MB; a shipped model has at most {LARGEST / 1e6:.0f}")
    if size + others > LARGEST_TOGETHER:
        raise WorkFailed(f"with {name} the shipped models would have more than {LARGEST_TOGETHER / 1e6:.0f} MB")


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m headwise.workflows.package_model RUN NAME", file=sys.stderr)
        return 2
    try:
        made = ship(Path(arguments[0]), arguments[1], print)
    except HeadwiseError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{made.path}: {made.size / 1e6:.2f} MB")
    print(f"translations equal to those of the run's own model, of {made.sentences} validation sentences:")
    print(f"    float16 {made.same_float16}, int8 {made.same_int8}")
    for score in made.scores:
        print(f"    {score.test:<20} {score.engine:<8} {score.metric:<6} {score.value:6.2f}  {score.signature}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
