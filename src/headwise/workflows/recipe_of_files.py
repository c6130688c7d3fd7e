"""A recipe from files alone: what `headwise train --source … --target …` and `headwise init` begin with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomli_w

from headwise.config.families import default_family
from headwise.config.recipe import build_recipe, load_recipe, own_values, print_recipe
from headwise.config.schema import Recipe, Texts
from headwise.errors import HeadwiseError, UsageError
from headwise.tasks import find_task
from headwise.tasks.automatic import Choice, paced
from headwise.tasks.choices import choices_for
from headwise.tasks.interface import check_fields

Files = Mapping[str, Sequence[str] | None]
_TABLES = ("table", "images", "sounds")  # the fields of [data] that may name a table
_OPTIONS = ("--source and --target", "--text", "--table", "--images", "--sounds")


def load_or_make(
    recipe: str,
    files: Files,
    languages: str,
    overrides: Sequence[str] = (),
    *,
    columns: str = "",
    needs_data: bool = True,
) -> tuple[Recipe, Path, str]:
    """A recipe by its name, or one that names these files; with the folder of its paths and a name for its run."""
    given = {name: list(paths) for name, paths in files.items() if paths}
    if recipe and given:
        raise UsageError(f"give a recipe or files ({', '.join(_OPTIONS)}), not both")
    if recipe and columns:
        raise UsageError(f"--columns is for files; of a recipe set them with --set data.columns={columns}")
    if recipe:
        loaded, base = load_recipe(recipe, overrides, data=None if needs_data else Path())
        return loaded, base, Path(recipe).stem
    values = values_of({**given, "languages": names_in(languages), "columns": names_in(columns)})
    return build_recipe(values, overrides, origin="these files"), Path(), _name(given)


def values_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a recipe that follow from its [data]: which files there are decides about family and task."""
    given = [name for name in Texts.model_fields if data.get(name)]
    family = default_family(given[0]) if given else None
    if family is None:
        raise UsageError(f"there are no files: give a recipe, or {' or '.join(_OPTIONS)}")
    if len(given) > 1 and given != ["source", "target"]:
        raise UsageError(f"--{given[0]} and --{given[1]} are for different models: give one of them")
    if data.get("columns") and given[0] not in _TABLES:
        tables = ", ".join(f"--{name}" for name in _TABLES)
        raise UsageError(f"--columns is for tables ({tables}), not for --{given[0]}")
    return {"data": dict(data), "model": {"family": family.name}, "task": family.default_for[given[0]]}


def names_in(text: str) -> list[str]:
    """en,de -> [en, de]."""
    return [name.strip() for name in text.split(",") if name.strip()]


def commented_recipe(files: Files, languages: str, folder: Path = Path(), columns: str = "") -> str:
    """A recipe as TOML with every choice that `headwise train` would make for these files, and its reason.

    Its paths are relative to `folder`, where the recipe is to be.
    """
    given = {name: list(paths) for name, paths in files.items() if paths}
    recipe = build_recipe(values_of({**given, "languages": names_in(languages), "columns": names_in(columns)}))
    completed, taken = _chosen(recipe, Path())
    values = own_values(completed)
    for name in given:
        paths = [path if Path(path).is_absolute() else os.path.relpath(path, folder) for path in given[name]]
        values["data"][name] = paths[0] if len(paths) == 1 else paths
    return _with_reasons(tomli_w.dumps(_plain(values)), taken)


def shown_recipe(recipe: Recipe, base: Path) -> str:
    """A complete recipe as TOML, with what training would choose for its data, if that can be read.

    What training chooses once it has timed a few updates is not known yet, and so not shown.
    """
    try:
        check_fields(find_task(recipe.task_name), recipe)
        recipe, _ = _chosen(recipe, base)
    except HeadwiseError:
        return print_recipe(recipe)
    _, chosen_later = paced(recipe, 1, 1.0)
    return print_recipe(recipe, without=[choice.key for choice in chosen_later])


def _chosen(recipe: Recipe, base: Path) -> tuple[Recipe, list[Choice]]:
    facts = find_task(recipe.task_name).examine(recipe, base).facts
    with TemporaryDirectory() as cache:
        return choices_for(recipe, base, facts, Path(cache))


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
