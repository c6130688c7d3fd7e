"""A recipe from files alone: what `headwise train --source … --target …` and `headwise init` begin with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from headwise.config.families import default_family
from headwise.config.recipe import build_recipe, load_recipe, own_values
from headwise.config.schema import Recipe
from headwise.errors import UsageError
from headwise.tasks import find_task
from headwise.tasks.automatic import Choice, DataFacts, choose
from headwise.workflows.check import check

Files = Mapping[str, Sequence[str] | None]


def load_or_make(
    recipe: str, files: Files, languages: str, overrides: Sequence[str] = (), *, needs_data: bool = True
) -> tuple[Recipe, Path, str]:
    """A recipe by its name, or one that names these files; with the folder of its paths and a name for its run."""
    given = {name: list(paths) for name, paths in files.items() if paths}
    if recipe and given:
        raise UsageError("give a recipe or files (--source, --target, --text), not both")
    if recipe:
        loaded, base = load_recipe(recipe, overrides, data=None if needs_data else Path())
        return loaded, base, Path(recipe).stem
    if not given:
        raise UsageError("nothing to train on: give a recipe, or --source and --target, or --text")
    return build_recipe(values_of(given, languages), overrides, origin="these files"), Path(), _name(given)


def values_of(files: Mapping[str, Sequence[str]], languages: str) -> dict[str, Any]:
    """The sections of a recipe that follow from the files themselves."""
    if "text" in files and len(files) > 1:
        raise UsageError("give --text for a language model, or --source and --target for a translator, not both")
    codes = [code.strip() for code in languages.split(",") if code.strip()]
    data: dict[str, Any] = {**files, **({"languages": codes} if codes else {})}
    family = default_family("generate" if "text" in files else "translate")
    return {"data": data, **({"model": {"family": family.name}} if family is not None else {})}


def commented_recipe(files: Files, languages: str, folder: Path = Path()) -> str:
    """A recipe as TOML with every choice that `headwise train` would make for these files, and its reason.

    Its paths are relative to `folder`, where the recipe is to be.
    """
    given = {name: list(paths) for name, paths in files.items() if paths}
    if not given:
        raise UsageError("nothing to write a recipe for: give --source and --target, or --text")
    recipe = build_recipe(values_of(given, languages))
    report = check(recipe.data, Path())
    unit = "pairs" if report.parallel else "lines"
    facts = DataFacts(report.counts.kept, report.sides[0].characters, unit)
    completed, taken = choose(recipe, find_task(recipe.task_name).automatic(recipe, facts))
    values = own_values(completed)
    for name in given:
        paths = [path if Path(path).is_absolute() else os.path.relpath(path, folder) for path in given[name]]
        values["data"][name] = paths[0] if len(paths) == 1 else paths
    return _with_reasons(tomli_w.dumps(_plain(values)), taken)


def _with_reasons(toml: str, taken: Sequence[Choice]) -> str:
    reasons = {choice.key: choice.reason for choice in taken}
    lines, section = [], ""
    for line in toml.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        reason = reasons.get(f"{section}.{line.partition(' = ')[0]}")
        lines.append(f"{line:<34}# {reason}" if reason else line)
    return "\n".join(["# Written by headwise init. A setting that is removed is chosen again.", *lines, ""])


def _plain(values: Any) -> Any:
    """TOML has lists only."""
    if isinstance(values, dict):
        return {key: _plain(value) for key, value in values.items() if value not in ({}, (), None)}
    return [_plain(value) for value in values] if isinstance(values, tuple) else values


def _name(files: Mapping[str, Sequence[str]]) -> str:
    """Of the run: the first file's, up to its first dot, and the sides' endings: train.en, train.de -> train-en-de."""
    packed = (".gz", ".xz", ".zst")
    names = [Path(paths[0]) for paths in files.values()]
    stems = [path.stem if path.suffix in packed else path.name for path in names]
    head = stems[0].partition(".")[0] or "run"
    endings = [stem.rpartition(".")[2] for stem in stems if "." in stem and stem.partition(".")[0] == head]
    return "-".join([head, *(endings if len(endings) > 1 else [])])
