"""Estimates the memory that training a model takes, before it is built."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from headwise.bundle.declaration import LARGEST_SETTING
from headwise.config.families import find_family
from headwise.config.schema import Recipe
from headwise.errors import RecipeError, ShapeError
from headwise.models.registry import build_model

# Numbers that an optimizer keeps per parameter, beside the parameter and its gradient.
_KEPT = {"sgd": 0, "momentum": 1, "adagrad": 1, "rmsprop": 1, "adam": 2, "adamw": 2, "adafactor": 0}
_BYTES = 4  # weights, gradients and averages are float32, whatever the products are computed in
_BEYOND = 1 << 62  # parameters: more than there can be


def check_memory(recipe: Recipe, device: torch.device, shards: int = 1) -> None:
    """Refuses a model whose weights, gradients and optimizer alone take more memory than is free.

    What a batch takes comes on top, so a model that passes is not sure to fit; one that does not pass never fits.
    """
    if recipe.model.from_ is not None:
        return  # its weights are there, and were checked
    family, settings = recipe.model.family, recipe.model.settings.model_dump(mode="json")
    for name, value in settings.items():
        counted = name.endswith(("_dim", "layers", "_heads", "features", "buckets"))  # in the number of parameters
        if type(value) is int and not counted and value > LARGEST_SETTING:
            raise RecipeError(f"model.{name} must be at most {LARGEST_SETTING:,}, not {value:,}")
    each = _BYTES * (2 + _KEPT[recipe.training.optimizer] + bool(recipe.training.ema)) / shards
    free = free_memory(device)
    count = count_parameters(family, settings, recipe.tokenizer.size)
    if count * each <= free:
        return
    raise RecipeError(
        f"this model cannot be trained here: its {_shown(count)} parameters need {_gigabytes(count * each)} with "
        f"training.optimizer = '{recipe.training.optimizer}', and {_gigabytes(free)} are free; at most "
        f"{_shown(int(free / each))} parameters fit{_fitting(recipe, free / each)}: lower the sizes in [model]"
    )


def count_parameters(family: str, settings: Mapping[str, Any], vocabulary: int) -> int:
    """The number of parameters of a network that is never built: each layer adds as many as the second one did.

    The vocabulary is the one that the recipe asks for; there may be fewer tokens in the end.
    """
    declared = find_family(family)
    assert declared is not None
    sizes = {name: vocabulary if name.endswith("vocab") else 2 for name in declared.sizes}
    layers = {name: value for name, value in settings.items() if name.endswith("layers") and isinstance(value, int)}
    one = {**sizes, **settings, **dict.fromkeys(layers, 1)}
    try:
        total = base = _count(family, one)
        for name, number in layers.items():
            total += (number - 1) * (_count(family, {**one, name: 2}) - base) if number > 1 else 0
    except ShapeError as error:
        raise RecipeError(f"[model] is not possible: {error}") from error
    except (RuntimeError, ArithmeticError, TypeError, ValueError):  # a size that no tensor can have
        return _BEYOND
    return total


def _count(family: str, architecture: Mapping[str, Any]) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build_model(family, architecture).parameters())


def free_memory(device: torch.device) -> int:
    """Bytes that this process may still take: of the device, or of the machine within the limit of its container."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = (_lines(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    if limit and used and limit[0].isdecimal():
        free = min(free, max(0, int(limit[0]) - int(used[0])))
    return free


def used_memory(device: torch.device) -> int:
    """The most bytes that this process has taken so far: of the device, or of the machine."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except OSError:
        return []


def _fitting(recipe: Recipe, most: float) -> str:
    """The largest preset of the family that fits, in words."""
    family = find_family(recipe.model.family)
    assert family is not None
    sizes = {
        name: count_parameters(family.name, family.resolve(name, {}).model_dump(mode="json"), recipe.tokenizer.size)
        for name in family.presets
    }
    there = [(count, name) for name, count in sizes.items() if count <= most]
    return f", such as model.preset = '{max(there)[1]}' with {_shown(max(there)[0])}" if there else ""


def _shown(count: int) -> str:
    return f"{count / 1e6:,.0f} million" if count < _BEYOND else "more than a quintillion"


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"
