"""A CTranslate2 directory, opened: its settings, vocabularies and model.bin, each checked before it is believed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.bundle.directory import LARGEST_JSON, read_json
from headwise.bundle.stored_weights import Shapes
from headwise.bundle.weights import declared_shapes
from headwise.errors import ModelError
from headwise.files import read_bounded
from headwise.interop.ctranslate2.export import MANIFEST, MODEL
from headwise.interop.ctranslate2.model_file import ModelFile, open_model_file
from headwise.interop.imported import Weights
from headwise.interop.keys import Key, Orders

ACTIVATIONS = {0: "relu", 1: "gelu-tanh", 2: "silu", 3: "gelu"}  # CTranslate2's numbers


@dataclass(frozen=True)
class Directory:
    """What a directory of CTranslate2 has."""

    path: Path
    file: ModelFile
    config: dict[str, Any]  # config.json, which old directories do not have
    manifest: dict[str, Any]  # export.json, which only Headwise writes

    def setting(self, stack: str, name: str, default: float) -> float:
        """A setting of a stack; old files have one for the whole model."""
        return self.file.number(f"{stack}/{name}" if f"{stack}/{name}" in self.file else name, default)

    def must(self, name: str, wanted: float) -> None:
        """For what Headwise has in one way only."""
        found = self.file.number(name, wanted)
        if found != wanted:
            raise ModelError(f"{self.file.file}: {name} = {found:g} is not supported, only {wanted:g}")

    def activation(self, stack: str) -> str:
        number = int(self.setting(stack, "activation", 0))
        if number not in ACTIVATIONS:
            raise ModelError(f"{self.file.file}: its activation function (number {number}) is not supported")
        return ACTIVATIONS[number]

    def layers(self, stack: str) -> int:
        """How many there are, from 0 without a gap."""
        names = {name.split("/")[1] for name in self.file.variables if name.startswith(f"{stack}/layer_")}
        numbers = {name.removeprefix("layer_") for name in names} - {"norm"}
        if not numbers or numbers != {str(number) for number in range(len(numbers))}:
            raise ModelError(f"{self.file.file} lacks layers of the {stack}; take another copy of the model")
        return len(numbers)

    def vocabulary(self, *names: str) -> list[str]:
        """The tokens of the first of these that there is, such as source_vocabulary or shared_vocabulary."""
        for name in names:
            if (self.path / f"{name}.json").is_file():
                return _tokens(self.path / f"{name}.json")
            if (self.path / f"{name}.txt").is_file():
                return _text(self.path / f"{name}.txt").removesuffix("\n").split("\n")
        raise ModelError(f"{self.path} has no {names[0]}.json; take another copy of the model")

    def token(self, name: str, default: str) -> str | None:
        """A special token that config.json names."""
        value = self.config.get(name, default)
        if value is not None and not isinstance(value, str):
            raise ModelError(f"{self.path / 'config.json'}: {name} must be a token, not {value!r}")
        return value

    def matrix(self, name: str) -> tuple[int, int]:
        """The shape of a tensor that must have two axes."""
        shape = self.file.shape(name)
        if len(shape) != 2:
            raise ModelError(f"{self.file.file}: {name} has the shape {list(shape)}; take another copy of the model")
        return shape[0], shape[1]

    def tensor(self, name: str) -> Tensor:
        return torch.from_numpy(np.require(self.file.floats(name), requirements=["C", "W"]))


def is_directory(folder: Path) -> bool:
    return (folder / MODEL).is_file()


def open_directory(folder: Path) -> Directory:
    """Reads headers and settings only."""
    config, manifest = folder / "config.json", folder / MANIFEST
    return Directory(
        folder,
        open_model_file(folder / MODEL),
        read_json(config) if config.is_file() else {},
        read_json(manifest) if manifest.is_file() else {},
    )


@dataclass(frozen=True)
class Rows:
    """Rows that are added at the end of a vocabulary's table, for special tokens that it lacks: vectors and logits."""

    copies: tuple[int | None, ...] = ()  # the row whose vector each has; None: zeros
    logit: float = 0.0  # what stands for them in a bias

    def appended(self, values: Tensor) -> Tensor:
        if not self.copies:
            return values
        if values.dim() == 1:
            return torch.cat((values, values.new_full((len(self.copies),), self.logit)))
        new = [torch.zeros_like(values[0]) if copy is None else values[copy] for copy in self.copies]
        return torch.cat((values, torch.stack(new)))


def read_weights(
    directory: Directory,
    family: str,
    architecture: dict[str, Any],
    keys: Iterable[Key],
    orders: Orders,
    *,
    rows: dict[str, Rows] | None = None,
    settings: Iterable[str] = (),
) -> Weights:
    """The weights of a network of ours, by a key table. Every variable of the file is in the table or in `settings`.

    A bias that is missing is zero. `rows`: what is added to the vocabulary of each side.
    """
    table, added, file = {key.ours: key for key in keys}, rows or {}, directory.file
    _check_names(file, table, set(settings))
    shapes = declared_shapes(directory.path, family, architecture)
    for key in table.values():
        _check_shape(file, key, shapes, orders, added)
    if lacking := sorted(shapes.keys() - table.keys()):
        raise ModelError(f"{file.file}: there is nothing for {lacking[0]}; its weights are not those of '{family}'")

    def read(name: str) -> Tensor:
        key = table[name]
        parts = [directory.tensor(part) if part in file else _no_bias(file, part) for part in key.names]
        if key.vocabulary:
            parts = [added.get(key.vocabulary, Rows()).appended(part) for part in parts]
            return key.to_ours(parts, tuple(parts[0].shape), orders)
        return key.to_ours(parts, shapes[name], orders)

    return Weights(directory.path, shapes, read)


def _check_names(file: ModelFile, table: dict[str, Key], settings: set[str]) -> None:
    wanted = {name for key in table.values() for name in key.names}
    for name in sorted(wanted):
        if name not in file and not (_is_bias(name) and _weight_of(name) in file):
            raise ModelError(f"{file.file} lacks {name}; take another copy of the model")
    known = wanted | settings | {f"{name}_scale" for name in wanted}
    unknown = sorted(name for name in file.variables.keys() - known)
    if unknown:
        raise ModelError(f"{file.file} has {unknown[0]}, which Headwise does not know; the model cannot be imported")


def _check_shape(file: ModelFile, key: Key, shapes: Shapes, orders: Orders, added: dict[str, Rows]) -> None:
    found = [file.shape(name) if name in file else (file.shape(_weight_of(name))[0],) for name in key.names]
    if key.vocabulary:
        more, order = len(added.get(key.vocabulary, Rows()).copies), orders.rows[key.vocabulary]
        if not all(shape and shape[0] + more > int(order.max()) for shape in found):
            raise ModelError(f"{file.file}: {key.names[0]} has fewer rows than the vocabulary has tokens")
        found = [(len(order), *shape[1:]) for shape in found]
    if not key.fits(found, shapes.get(key.ours)):
        raise ModelError(f"{file.file}: {key.names[0]} has the shape {list(found[0])}, not {shapes.get(key.ours)}")


def _no_bias(file: ModelFile, name: str) -> Tensor:
    return torch.zeros(file.shape(_weight_of(name))[0])


def _is_bias(name: str) -> bool:
    return name.endswith("/bias")


def _weight_of(name: str) -> str:
    return f"{name.removesuffix('/bias')}/weight"


def _tokens(file: Path) -> list[str]:
    try:
        values: Any = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read: {error}; take another copy of the model") from None
    if not isinstance(values, list) or not all(isinstance(token, str) for token in values):
        raise ModelError(f"{file} is not a list of tokens; take another copy of the model")
    return values


def _text(file: Path) -> str:
    try:
        return read_bounded(file, LARGEST_JSON).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
