"""Trains from Python, with a progress bar: what `headwise.train` is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.config.recipe import build_recipe, load_recipe
from headwise.config.schema import Recipe, Texts
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.workflows.train import Finished

SECTIONS = tuple(name for name in Recipe.model_fields if name != "task")


def train(
    recipe: str | Path | None = None,
    *,
    output: str | Path,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    quiet: bool = False,
    **keywords: Any,
) -> Finished:
    """Trains a recipe, or files with settings, into the directory `output`; returns how the run ended.

    Without a recipe give files (source and target, text, …) with languages, and sections of a recipe as dictionaries:
    training={"minutes": 10}. `settings` changes single values of a recipe: {"training.steps": 500}. What is left out is
    chosen, as on the command line. Paths are relative to the current folder, those in a recipe to the recipe.
    """
    loaded, base = _recipe(recipe, keywords, settings or {})
    from headwise.workflows.progress_bar import ProgressBar
    from headwise.workflows.train import train as run

    if quiet:
        return run(loaded, base, Path(output), resume=resume)
    with ProgressBar() as bar:
        finished = run(loaded, base, Path(output), resume=resume, hooks=[bar], tell=bar.say)
        bar.say(finished.verdict)
    return finished


def _recipe(recipe: str | Path | None, keywords: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[Recipe, Path]:
    from headwise.workflows.recipe_of_files import values_of

    allowed = (*Texts.model_fields, "languages", "task", *SECTIONS)
    if unknown := [name for name in keywords if name not in allowed]:
        raise UsageError(f"train has no argument '{unknown[0]}'; there are {', '.join(allowed)}")
    if recipe is not None:
        if keywords:
            name = next(iter(keywords))
            raise UsageError(f"give a recipe or '{name}', not both; settings changes values of a recipe")
        loaded, base = load_recipe(recipe)
        return _changed(loaded, settings), base
    files = {name: keywords[name] for name in (*Texts.model_fields, "languages") if keywords.get(name)}
    values = values_of({**dict(keywords.get("data", {})), **{name: _strings(value) for name, value in files.items()}})
    for name in ("task", *SECTIONS):
        if name in keywords and name != "data":
            given = keywords[name]
            values[name] = {**values.get(name, {}), **given} if isinstance(given, Mapping) else given
    return _changed(build_recipe(values, origin="train"), settings), Path()


def _changed(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    from headwise.config.recipe import own_values

    values = own_values(recipe)
    for key, value in settings.items():
        *sections, last = key.split(".")
        place = values
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return build_recipe(values, origin="train") if settings else recipe


def _strings(value: str | Path | Sequence[str | Path]) -> list[str]:
    return [str(value)] if isinstance(value, (str, Path)) else [str(one) for one in value]
