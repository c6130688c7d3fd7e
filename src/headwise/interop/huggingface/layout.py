"""What each architecture of the Hub declares: a key table that serves both directions, a config map, its tokenizers."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface import families
from headwise.interop.huggingface.published import Config
from headwise.text.published import Numbering, Origin
from headwise.text.tokenizer import TokenizerPair

Architecture = dict[str, Any]  # the arguments that build our network


@dataclass(frozen=True)
class Key:
    """One of our weights and the published ones that it holds. Transforms are undone in reverse order."""

    ours: str
    theirs: tuple[str, ...]  # several stand one below the other in ours
    transposed: bool = False  # published as (in, out)
    vocabulary: bool = False  # rows are tokens, which we number in our own order
    flattened: bool = False  # published with a leading axis of 1
    width: tuple[int, ...] = ()  # axes of ours that are the model's width, which has another order there

    def at(self, layer: int) -> Key:
        """The key of one layer: its number stands in for {}."""
        return replace(self, ours=self.ours.format(layer), theirs=tuple(name.format(layer) for name in self.theirs))

    def shape(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The shape of ours, from those of theirs."""
        turned = [shape[::-1] if self.transposed else shape[1:] if self.flattened else shape for shape in shapes]
        if not all(shape and shape[1:] == turned[0][1:] for shape in turned):
            return ()
        return (sum(shape[0] for shape in turned), *turned[0][1:])

    def to_ours(self, tensors: Sequence[Tensor], order: Tensor, width: Tensor | None) -> Tensor:
        """`order` has the published row of each of ours, `width` the published place of each of our coordinates."""
        turned = [x.T if self.transposed else x.flatten() if self.flattened else x for x in tensors]
        whole = turned[0] if len(turned) == 1 else torch.cat(turned)
        whole = whole[order] if self.vocabulary else whole
        for axis in self.width:
            whole = whole if width is None else whole.index_select(axis, width)
        return whole.contiguous()

    def to_theirs(self, tensor: Tensor, order: Tensor, width: Tensor | None) -> dict[str, Tensor]:
        for axis in self.width:
            tensor = tensor if width is None else tensor.index_select(axis, width.argsort())
        tensor = tensor[order.argsort()] if self.vocabulary else tensor
        parts = tensor.chunk(len(self.theirs))
        turned = [x.T if self.transposed else x[None] if self.flattened else x for x in parts]
        return {name: x.contiguous() for name, x in zip(self.theirs, turned, strict=True)}


@dataclass(frozen=True)
class Tokenized:
    """The tokenizers of a published model in our numbering."""

    pair: TokenizerPair
    numbering: Numbering
    origins: tuple[Origin, ...]  # one for each tokenizer of the pair


@dataclass(frozen=True)
class Layout:
    """How an architecture of the Hub and a family of ours become each other."""

    family: str
    class_name: str  # as `architectures` in config.json names it
    task: str
    read_config: Callable[[Config], Architecture]  # settings of ours, without the sizes of vocabularies
    write_config: Callable[[Architecture], dict[str, Any]]  # raises UsageError for what cannot be expressed
    keys: Callable[[Architecture], Iterable[Key]]
    tokenizers: Callable[[Path, Config], Tokenized]
    sizes: Callable[[Numbering], dict[str, int]]
    special_config: Callable[[Numbering], dict[str, Any]] | None = None  # ids of special tokens; None: by their roles
    ends_texts: bool = False  # an end of sentence stands after every text
    ignored: str = r"(?!)"  # published names that hold no weights of their own
    prefix: str = ""  # that some files leave out
    width: Callable[[int], list[int]] | None = None  # the published place of each coordinate of our model's width

    def all_keys(self, architecture: Architecture, names: Iterable[str] = ()) -> list[Key]:
        """`names` are those of a file, which may lack the prefix."""
        keys = list(self.keys(architecture))
        if self.prefix and names and not any(name.startswith(self.prefix) for name in names):
            keys = [replace(k, theirs=tuple(name.removeprefix(self.prefix) for name in k.theirs)) for k in keys]
        return keys

    def is_ignored(self, name: str) -> bool:
        return re.fullmatch(self.ignored, name) is not None

    def width_order(self, architecture: Architecture) -> Tensor | None:
        return None if self.width is None else torch.tensor(self.width(architecture["model_dim"]))


def layouts() -> dict[str, Layout]:
    """All of them, by `model_type`."""
    names = [module.name for module in pkgutil.iter_modules(families.__path__)]
    return {name: importlib.import_module(f"{families.__name__}.{name}").LAYOUT for name in sorted(names)}


def layout_of(config: Config) -> Layout:
    """The layout that a config.json asks for."""
    kind, known = config.values.get("model_type"), layouts()
    if "format" in config.values and "family" in config.values:
        raise UsageError(f"{config.file.parent} is a Headwise model already; use it as it is")
    if not isinstance(kind, str) or kind not in known:
        raise ModelError(f"{config.file}: the architecture {kind!r} is unknown; Headwise imports {', '.join(known)}")
    classes: Any = config.values.get("architectures")
    if isinstance(classes, list) and classes and known[kind].class_name not in classes:
        raise ModelError(f"{config.file}: {classes[0]} is not supported, only {known[kind].class_name}")
    return known[kind]


def layout_for(family: str) -> tuple[str, Layout] | None:
    """Its `model_type` and the layout in which a family of ours is exported; None: there is none."""
    found: Mapping[str, Layout] = layouts()
    return next(((kind, layout) for kind, layout in found.items() if layout.family == family), None)
