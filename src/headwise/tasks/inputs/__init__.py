"""The kinds of things that models classify: each has a file here with its object in INPUTS, found by its name."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from headwise.bundle.assets import Assets
from headwise.config.schema import Recipe
from headwise.errors import ModelError, RecipeError
from headwise.tasks.inputs.interface import Inputs


@cache
def all_inputs() -> dict[str, Inputs]:
    """All kinds, by the field of [data] that names their files."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found: list[Inputs] = [module.INPUTS for module in modules if hasattr(module, "INPUTS")]
    return {one.field: one for one in found}


def inputs_of_recipe(recipe: Recipe) -> Inputs:
    """The kind of a recipe's data."""
    found = [one for field, one in all_inputs().items() if field in recipe.data.given]
    if len(found) != 1:
        raise RecipeError(f"give one of {', '.join(f'data.{field}' for field in all_inputs())}")
    return found[0]


def inputs_of_model(assets: Assets) -> Inputs:
    """The kind that a model reads."""
    for one in all_inputs().values():
        if one.opens(assets):
            return one
    raise ModelError("the model's files do not say what it reads: it has no tokenizer and no preprocessing")


def inputs_of_store(directory: Path) -> Inputs:
    """The kind of a store that `prepare` made: its name begins with the field."""
    return all_inputs()[directory.name.partition("-")[0]]
