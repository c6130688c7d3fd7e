"""What each architecture of the Hub declares: a key table for both directions, a config map, its other files."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.bundle.assets import Assets
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface import families
from headwise.interop.huggingface.published import Config
from headwise.interop.keys import Key, Orders
from headwise.text.published import Numbering, Origin
from headwise.text.tokenizer import BOS, EOS, PAD, UNK

Architecture = dict[str, Any]  # the arguments that build our network
ROLES = {PAD: "pad_token", UNK: "unk_token", BOS: "bos_token", EOS: "eos_token"}

__all__ = ["ROLES", "Architecture", "Beside", "Key", "Layout", "layout_for", "layout_of", "layouts", "role_ids"]


@dataclass(frozen=True)
class Beside:
    """What stands beside the weights of a published model, as we have it."""

    assets: Assets  # each architecture has those that it needs
    numberings: tuple[Numbering, ...] = ()  # of the vocabulary; of source and target where they have two
    origins: tuple[Origin, ...] = ()  # one for each tokenizer file

    @property
    def numbering(self) -> Numbering:
        """Of the only vocabulary, or of the target's."""
        return self.numberings[-1]


@dataclass(frozen=True)
class Layout:
    """How one class of the Hub and a family of ours, for one task, become each other.

    A file of `families` is named like a `model_type` and has its layouts in LAYOUTS, one for each class: the same
    network with another head is another class there, and another task here.
    """

    family: str
    class_name: str  # as `architectures` in config.json names it
    task: str
    read_config: Callable[[Config], Architecture]  # settings of ours, without the sizes that come from the other files
    write_config: Callable[[Architecture], dict[str, Any]]  # raises UsageError for what cannot be expressed
    keys: Callable[[Architecture], Iterable[Key]]
    read_beside: Callable[[Path, Config], Beside]
    sizes: Callable[[Beside], dict[str, Any]]  # the network's arguments that come from the other files
    # Ids of special tokens and settings that follow from them; None: by their roles.
    special_config: Callable[[Architecture, Numbering], dict[str, Any]] | None = None
    # Tensors of a file that are always the same, so that we do not store them; further JSON files by name.
    constants: Callable[[Architecture], dict[str, Tensor]] = lambda architecture: {}
    # Weights of a class that it does not compute with, by name and shape: written as zeros, not read.
    unused: Callable[[Architecture], dict[str, tuple[int, ...]]] = lambda architecture: {}
    files: Callable[[Architecture, Beside], dict[str, Any]] = lambda architecture, beside: {}
    example: str = ""  # Python that runs in an exported directory; empty: one that opens the model
    ends_texts: bool = False  # an end of sentence stands after every text
    begins_texts: bool = False  # a begin of sentence stands before a text, or before a pair of them
    ignored: str = r"(?!)"  # published names that hold no weights of their own
    renamed: tuple[tuple[str, str], ...] = ()  # patterns of names in old files, and what stands there today
    prefix: str = ""  # that some files leave out
    width: Callable[[int], list[int]] | None = None  # the published place of each coordinate of our model's width
    skipped: Callable[[Numbering], int] = lambda numbering: 0  # rows of positions before the first that is used

    def today(self, names: Iterable[str], wanted: Container[str]) -> dict[str, str]:
        """The names of a file by those of the key table, which are `wanted`."""
        found: dict[str, str] = {}
        for name in names:
            new = name
            for pattern, replacement in self.renamed:
                new = re.sub(pattern, replacement, new)
            if new not in wanted and f"{self.prefix}{new}" in wanted:
                new = f"{self.prefix}{new}"
            if new in found:
                raise ModelError(f"the weights {found[new]} and {name} are the same one; take another copy")
            found[new] = name
        return found

    def is_ignored(self, name: str) -> bool:
        return re.fullmatch(self.ignored, name) is not None

    def orders(self, architecture: Architecture, numberings: tuple[Numbering, ...]) -> Orders:
        width = None if self.width is None else torch.tensor(self.width(architecture["model_dim"]))
        rows = {} if not numberings else {"source": numberings[0], "target": numberings[-1]}
        ordered = {side: torch.tensor(numbering.order) for side, numbering in rows.items()}
        return Orders(ordered, width, self.skipped_rows(numberings))

    def skipped_rows(self, numberings: tuple[Numbering, ...]) -> int:
        return self.skipped(numberings[-1]) if numberings else 0


def role_ids(numbering: Numbering) -> dict[str, Any]:
    """The ids of special tokens by their roles: pad_token_id, …"""
    return {f"{role}_id": numbering.special[number] for number, role in ROLES.items() if number in numbering.special}


def layouts() -> dict[str, tuple[Layout, ...]]:
    """All of them, by `model_type`; the first of each is that of a config that names no class."""
    return {kind: _layouts_of(kind) for kind in _kinds()}


def _kinds() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(families.__path__))


def _layouts_of(kind: str) -> tuple[Layout, ...]:
    found: tuple[Layout, ...] = importlib.import_module(f"{families.__name__}.{kind}").LAYOUTS
    return found


def layout_of(config: Config) -> Layout:
    """The layout that a config.json asks for."""
    kind, known = config.values.get("model_type"), _kinds()
    if "format" in config.values and "family" in config.values:
        raise UsageError(f"{config.file.parent} is a Headwise model already; use it as it is")
    if not isinstance(kind, str) or kind not in known:
        raise ModelError(f"{config.file}: the architecture {kind!r} is unknown; Headwise imports {', '.join(known)}")
    classes: Any = config.values.get("architectures")
    there = _layouts_of(kind)
    if not isinstance(classes, list) or not classes:
        return there[0]
    found = next((layout for layout in there if layout.class_name in classes), None)
    if found is None:
        names = ", ".join(layout.class_name for layout in there)
        raise ModelError(f"{config.file}: {classes[0]} is not supported, only {names}")
    return found


def layout_for(family: str, task: str, settings: Architecture, preferred: object = None) -> tuple[str, Layout]:
    """The `model_type` and layout in which a model of ours is exported: of those that fit, the `preferred` type."""
    named = [
        (kind, layout) for kind, found in layouts().items() for layout in found
        if (layout.family, layout.task) == (family, task)
    ]  # fmt: skip
    named.sort(key=lambda pair: pair[0] != preferred)
    reasons = []
    for kind, layout in named:
        try:
            layout.write_config(settings)
        except UsageError as error:
            reasons.append(str(error))
        else:
            return kind, layout
    raise UsageError(reasons[0] if reasons else f"the Hub's layout of family '{family}', task '{task}' is not known")
