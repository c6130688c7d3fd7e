"""Recipes: TOML, `--set a.b=c` over it, and one clear line for a key or value that cannot be."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import tomli_w
from pydantic import BaseModel, ValidationError

from headwise.config.schema import Recipe, Texts, require_family
from headwise.errors import RecipeError
from headwise.files import check_name, read_bounded, shortened

DATA_VARIABLE = "HEADWISE_DATA"
PATH_KEYS = frozenset(
    {f"data.{part}{name}" for part in ("", "validation.", "test.") for name in Texts.model_fields}
    | {"tokenizer.files", "model.from"}
)
# Lists of names, which --set takes without brackets: data.columns=text,label.
NAME_KEYS = frozenset({"data.columns", "data.fields", "data.labels", "data.languages"})
_LARGEST_FILE = 1 << 20  # bytes
_DEEPEST = 8  # tables within tables: a recipe has three at most


def load_recipe(name: str | Path, overrides: Sequence[str] = (), data: Path | None = None) -> tuple[Recipe, Path]:
    """A recipe file, or the name of a shipped one, with overrides; and the folder that its paths are relative to.

    That folder is the recipe's own; a shipped recipe's is `data`, or what HEADWISE_DATA names. A shipped recipe whose
    paths are all absolute needs neither.
    """
    path, base = _find(name)
    try:
        values = _parse(read_bounded(path, _LARGEST_FILE).decode())
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: cannot be read: {error}") from error
    except ValueError as error:
        raise RecipeError(f"{path}: not valid TOML: {shortened(str(error))}") from error
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read: {error.strerror}") from error
    recipe = build_recipe(values, overrides, origin=str(path))
    if base is None:
        base = data or (Path() if absolute_paths(recipe, Path("/")) == recipe else _data_folder(str(name)))
    return recipe, base


def build_recipe(values: dict[str, Any], overrides: Sequence[str] = (), origin: str = "recipe") -> Recipe:
    """Checks plain values against the schema; `origin` is what an error names as their place."""
    places: dict[str, str] = {}
    for override in overrides:
        key, value = parse_override(override)
        _put(values, key, _from_here(key, value), override)
        places[key] = f"--set {shortened(override)}"
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        raise RecipeError(_explain(error, values, places, origin)) from error
    except RecipeError as error:
        raise RecipeError(f"{origin}: {error}") from error


def parse_override(text: str) -> tuple[str, Any]:
    """'training.steps=100' -> ('training.steps', 100). The value is TOML; anything else is taken as a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise RecipeError(f"--set {shortened(text)}: write it as section.key=value, such as --set training.steps=1000")
    if len(text.splitlines()) > 1:
        raise RecipeError(f"--set {shortened(' '.join(text.split()))}: has several lines; give --set once for each")
    if key.count(".") >= _DEEPEST:
        raise RecipeError(
            f"--set {shortened(text)}: the key has {key.count('.') + 1} parts, a setting has two or three"
        )
    try:
        return key.strip(), _parse(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        several = key.strip() in NAME_KEYS and "," in value
        return key.strip(), [name.strip() for name in value.split(",")] if several else value.strip()
    except ValueError as error:
        raise RecipeError(f"--set {shortened(text)}: not valid TOML: {shortened(str(error))}") from error


def _from_here(key: str, value: Any) -> Any:
    """Makes a path that is given on the command line relative to the current folder, not to the recipe."""
    if key not in PATH_KEYS:
        return value
    if isinstance(value, list):
        return [_from_here(key, one) for one in value]
    if not isinstance(value, str) or value == "-":
        return value
    is_name = key == "model.from" and Path(value).name == value and not os.path.exists(value)
    return value if is_name else str(Path(value).absolute())


def _parse(text: str) -> dict[str, Any]:
    """TOML that is not nested deeper than any recipe; ValueError otherwise."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise ValueError("it has a number of thousands of digits") from None
    level: list[Any] = [values]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)
                 if isinstance(inner, (dict, list))]  # fmt: skip
    if level:
        raise ValueError(f"it is nested too deeply: a recipe has at most {_DEEPEST} tables within each other")
    return values


def shipped_recipes() -> list[str]:
    folder = resources.files("headwise.config") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def print_recipe(recipe: Recipe, without: Iterable[str] = ()) -> str:
    """The recipe as TOML, with every setting that has a value, apart from those named in `without`."""
    values = recipe.model_dump(by_alias=True, exclude_none=True)
    for key in without:
        section, _, name = key.partition(".")
        values[section].pop(name, None)
    return tomli_w.dumps(_without_empty(values))


def own_values(recipe: Recipe) -> dict[str, Any]:
    """What a recipe itself names, without defaults."""
    values = recipe.model_dump(by_alias=True, exclude_unset=True, exclude={"model"})
    model = recipe.model
    common = {"family": model.family, "preset": model.preset, "from": model.from_}
    return {**values, "model": {**{key: value for key, value in common.items() if value is not None}, **model.own}}


def left_out(recipe: Recipe, key: str) -> bool:
    """Whether a recipe does not name a setting, such as 'training.warmup'."""
    section, _, name = key.partition(".")
    return name not in own_values(recipe).get(section, {})


def with_values(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe with settings such as {'training.warmup': 90} changed."""
    values = own_values(recipe)
    for key, value in changes.items():
        section, _, name = key.partition(".")
        values.setdefault(section, {})[name] = value
    return build_recipe(values)


def without_value(recipe: Recipe, key: str) -> Recipe:
    """The recipe with a setting left out."""
    section, _, name = key.partition(".")
    values = own_values(recipe)
    values.get(section, {}).pop(name, None)
    return build_recipe(values)


def absolute_paths(recipe: Recipe, base: Path) -> Recipe:
    """The same recipe with its paths made absolute, so that it means the same wherever it is kept."""

    def anchor(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(p if p == "-" else str((base / p).absolute()) for p in paths)

    def anchored(texts: Texts) -> dict[str, Any]:
        """All paths of a table and of the tables within it."""
        update: dict[str, Any] = {name: anchor(getattr(texts, name)) for name in Texts.model_fields}
        for name in ("validation", "test"):
            if held_out := getattr(texts, name, None):
                update[name] = held_out.model_copy(update=anchored(held_out))
        return update

    parts = tuple(part.model_copy(update=anchored(part)) for part in recipe.data.mixture)
    data = recipe.data.model_copy(update={**anchored(recipe.data), "mixture": parts})
    tokenizer = recipe.tokenizer.model_copy(update={"files": anchor(recipe.tokenizer.files)})
    start = recipe.model.from_
    model = recipe.model
    # A plain name that is no folder here is left alone: it may be that of a model that came with Headwise.
    if start is not None and ((base / start).exists() or Path(start).name != start):
        model = model.model_copy(update={"from_": str((base / start).absolute())})
    return recipe.model_copy(update={"data": data, "tokenizer": tokenizer, "model": model})


def _find(name: str | Path) -> tuple[Path, Path | None]:
    """The file, and the folder of its paths; None: it is a shipped recipe."""
    path = Path(name)
    check_name(path)
    if path.is_file():
        return path, path.parent
    if str(name) in shipped_recipes():
        with resources.as_file(resources.files("headwise.config") / "recipes" / f"{name}.toml") as shipped:
            return shipped, None
    if path.is_dir():
        raise RecipeError(f"{path} is a folder, not a recipe; give a TOML file")
    near = difflib.get_close_matches(str(name), shipped_recipes(), n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"shipped recipes: {', '.join(shipped_recipes()) or 'none'}"
    raise RecipeError(f"no recipe '{name}': neither a file nor a shipped recipe; {hint}")


def _data_folder(name: str) -> Path:
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        raise RecipeError(
            f"recipe '{name}' needs its corpus: set {DATA_VARIABLE} to the folder that holds the corpora, or copy the "
            "recipe and give paths of your own"
        )
    return Path(folder)


def _put(values: dict[str, Any], key: str, value: Any, override: str) -> None:
    *sections, last = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise RecipeError(f"--set {shortened(override)}: '{section}' is a value, not a section")
    values[last] = value


def _explain(error: ValidationError, values: dict[str, Any], places: dict[str, str], origin: str) -> str:
    """The first mistake as one line: where, which key, what is wrong, what it should be."""
    first = error.errors()[0]
    # A tuple's element number says little; what stands before it is the key.
    location = [str(part) for part in first["loc"] if not isinstance(part, int)]
    key = shortened(".".join(location))
    place = next(
        (p for k, p in places.items() if key == k or k.startswith(f"{key}.") or key.startswith(f"{k}.")), origin
    )
    if first["type"] == "extra_forbidden":
        names = _names_at(location[:-1], values)
        near = difflib.get_close_matches(location[-1], names, n=1, cutoff=0.5)
        prefix = ".".join([*location[:-1], ""])
        hint = f"did you mean '{prefix}{near[0]}'?" if near else f"there are {', '.join(names)}"
        return f"{place}: unknown key '{key}'; {hint}"
    message = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{place}: {key} must be {message}, not {_shown(first['input'])}"


def _shown(value: object) -> str:
    try:
        return shortened(repr(value))
    except ValueError:  # a number of more digits than Python writes out
        return "a number of thousands of digits"


def _names_at(sections: list[str], values: dict[str, Any]) -> list[str]:
    if sections == ["model"]:
        family = require_family(values["model"].get("family", "transformer"))
        return ["family", "preset", "from", *family.settings.model_fields]
    schema: type[BaseModel] = Recipe
    for section in sections:
        annotation = schema.model_fields[section].annotation
        candidates = [
            t for t in (annotation, *get_args(annotation)) if isinstance(t, type) and issubclass(t, BaseModel)
        ]
        schema = candidates[0]
    return [field.alias or name for name, field in schema.model_fields.items()]


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            value = _without_empty(value)
        if isinstance(value, tuple):
            value = [_without_empty(one) if isinstance(one, dict) else one for one in value]
        if value not in ([], {}, None):
            kept[key] = value
    return kept
