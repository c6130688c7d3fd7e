"""The families by name: one file each, named like the family, with its declaration in FAMILY. Needs no torch."""

from __future__ import annotations

import importlib
import pkgutil

from headwise.config.family import Family

_registered: dict[str, Family] = {}


def family_names() -> list[str]:
    """Names of all families, in alphabetical order."""
    return sorted({*(module.name for module in pkgutil.iter_modules(__path__)), *_registered})


def find_family(name: str) -> Family | None:
    """The declaration of a family, loaded when first asked for; None where there is no such family."""
    if name not in _registered and name in family_names():
        register_family(importlib.import_module(f"{__name__}.{name}").FAMILY)
    return _registered.get(name)


def default_family(data: str) -> Family | None:
    """The family that is trained where only files are given, by the field of `[data]` that names them."""
    found = (find_family(name) for name in family_names())
    return next((family for family in found if family is not None and data in family.default_for), None)


def register_family(family: Family) -> None:
    """Makes a family known that has no file here: one of another package, or of a test."""
    _registered[family.name] = family
