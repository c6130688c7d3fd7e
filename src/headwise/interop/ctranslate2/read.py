"""A CTranslate2 directory as a model of ours: what `headwise import` reads beside the layout of the Hub."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

from headwise.errors import ModelError
from headwise.interop.ctranslate2 import readers as files
from headwise.interop.ctranslate2.directory import Directory, open_directory
from headwise.interop.imported import Imported


def readers() -> dict[str, Callable[[Directory], Imported]]:
    """What reads each specification: a file of `readers` names those that it reads in READS, and has `read`."""
    names = [module.name for module in pkgutil.iter_modules(files.__path__)]
    modules = [importlib.import_module(f"{files.__name__}.{name}") for name in sorted(names)]
    return {name: module.read for module in modules for name in getattr(module, "READS", ())}


def read_model(folder: Path) -> Imported:
    """Reads a directory with a model.bin."""
    directory, known = open_directory(folder), readers()
    name = directory.file.specification
    if name not in known:
        names = ", ".join(sorted(name for name in known if name))
        raise ModelError(f"{directory.file.file}: CTranslate2's {name!r} is unknown; Headwise imports {names}")
    return known[name](directory)
