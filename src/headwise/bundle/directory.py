"""A model directory on disk: JSON and safetensors, hashed, written whole or not at all. Needs no torch.

    config.json          format version, family, task, architecture, languages, decoding defaults, precision, and the
                         SHA-256 of the rest
    model.safetensors    the weights
    tokenizer.json       (or source.tokenizer.json and target.tokenizer.json)
    card.json            recipe, data fingerprints, scores with their signatures

`config.json` is written last and holds the hashes, so a directory with a config is a whole one. Its `precision` says
how the weights are stored: float32 (also where it is not given), or float16, half the size, which becomes float32 when
it is loaded: models that ship with Headwise are stored so.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from headwise.bundle.shipped import locate, shipped_directories
from headwise.config.families import family_names, find_family
from headwise.config.family import Family, Settings
from headwise.errors import ModelError, ShapeError, WorkFailed
from headwise.files import sync

FORMAT_VERSION = 1
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "card.json"
PRECISIONS = ("float32", "float16")  # in which weights are stored


@dataclass(frozen=True)
class Bundle:
    """What config.json and card.json say; `path` is where the other files are."""

    path: Path
    family: str
    architecture: dict[str, Any]
    languages: tuple[str, ...] = ()
    decoding: dict[str, Any] = field(default_factory=dict)
    card: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    precision: str = "float32"  # of the stored weights, one of PRECISIONS
    task: str = ""  # what it was trained for; empty: the first task of its family

    @cached_property
    def declared(self) -> Family:
        """What the model's family declares of itself."""
        family = find_family(self.family)
        if family is None:
            raise ModelError(f"unknown model family '{self.family}'; this version has {', '.join(family_names())}")
        return family

    @cached_property
    def settings(self) -> Settings:
        """The hyperparameters, checked."""
        values = {name: value for name, value in self.architecture.items() if name not in self.declared.sizes}
        try:
            return self.declared.settings.of(values)
        except ShapeError as error:
            raise ModelError(f"{self.path / CONFIG} declares an impossible architecture: {error}") from error

    @property
    def task_name(self) -> str:
        return self.task or self.declared.tasks[0]


def open_bundle(path: str | Path, *, verify: bool = True) -> Bundle:
    """Reads and checks a model directory, or a shipped model, by its name. `verify`: every file must have its hash."""
    path = locate(path)
    if not (path / CONFIG).is_file():
        place = f"{path} is not there" if not path.exists() else f"{path} has no {CONFIG}"
        names = ", ".join(shipped_directories())
        others = f", or a model that came with Headwise: {names}" if names else ""
        raise ModelError(f"no model: {place}; give a model directory, such as RUN/model{others}")
    config = read_json(path / CONFIG)
    version = config.get("format")
    if not isinstance(version, int):
        raise ModelError(f"{path / CONFIG} is not a Headwise model: it has no format version")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{path} has model format {version}, this version reads up to {FORMAT_VERSION}; upgrade headwise"
        )
    precision = config.get("precision", "float32")
    if precision not in PRECISIONS:
        raise ModelError(f"{path / CONFIG}: precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
    try:
        files = {str(name): str(digest) for name, digest in config["files"].items()}
        bundle = Bundle(
            path, str(config["family"]), dict(config["architecture"]), tuple(config["languages"]),
            dict(config["decoding"]), read_json(path / CARD), files, precision, str(config.get("task", "")),
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelError(f"{path / CONFIG} is damaged: {error!r}; take another copy of the model") from error
    check_files(path, files, contents=verify)
    return bundle


def parameter_count(bundle: Bundle) -> int:
    """Number of weights, from the header of their file alone."""
    file = bundle.path / WEIGHTS
    try:
        with safe_open(file, framework="np") as stored:
            return sum(prod(stored.get_slice(name).get_shape()) for name in stored.keys())  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{file} cannot be read: {error}; take another copy of the model") from error


def check_files(directory: Path, files: dict[str, str], *, contents: bool = True) -> None:
    """Every named file must be in `directory` itself and, with `contents`, have its hash."""
    for name, digest in files.items():
        if Path(name).name != name:
            raise ModelError(f"{directory} names a file outside itself: {name!r}")
        if not (directory / name).is_file():
            raise ModelError(f"{directory} is damaged: {name} is missing; take another copy")
        if contents and file_hash(directory / name) != digest:
            raise ModelError(
                f"{directory} is damaged: {name} does not have the hash that was written; take another copy"
            )


def write_config(directory: Path, bundle: Bundle) -> None:
    """Finishes a model directory: the card, then the hashes of all files, then config.json."""
    write_json(directory / CARD, bundle.card)
    names = sorted(p.name for p in directory.iterdir() if p.is_file() and p.name != CONFIG)
    config = {
        "format": FORMAT_VERSION,
        "family": bundle.family,
        "task": bundle.task_name,
        "architecture": bundle.architecture,
        "languages": list(bundle.languages),
        "decoding": bundle.decoding,
        "precision": bundle.precision,
        "files": {name: file_hash(directory / name) for name in names},
    }
    write_json(directory / CONFIG, config)


def write_directory(final: Path, fill: Callable[[Path], None]) -> None:
    """Calls `fill` with a new directory beside `final`, syncs it, and renames it into place: there or not, never half.

    An older `final` is moved away first and deleted last.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    new = final.with_name(f".{final.name}.new-{os.getpid()}")
    old = final.with_name(f".{final.name}.old-{os.getpid()}")
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        fill(new)
        _open_to_others(new)
        sync_tree(new)
        if final.exists():
            os.rename(final, old)
        os.rename(new, final)
        sync(final.parent)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(new, ignore_errors=True)
        if old.exists() and not final.exists():
            os.rename(old, final)
        reason = getattr(error, "strerror", None) or error
        raise WorkFailed(f"could not write {final}: {reason}; free some space or choose another place") from error
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def copy_files(source: Path, target: Path) -> None:
    """The files of a model directory into another one, without what others may have put beside them."""
    for name in [*open_bundle(source, verify=False).files, CONFIG]:
        shutil.copyfile(source / name, target / name)


def _open_to_others(directory: Path) -> None:
    """safetensors writes files that only their owner may read; a model is as readable as its folder."""
    for path in directory.rglob("*"):
        if path.is_file():
            path.chmod(directory.stat().st_mode & 0o666)


def sync_tree(directory: Path) -> None:
    """fsync of every file and folder, deepest first."""
    for folder, _, files in os.walk(directory, topdown=False):
        for name in files:
            sync(Path(folder, name))
        sync(Path(folder))


def file_hash(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path.parent} is damaged: {path.name} is missing; take another copy") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} is damaged: it must hold a JSON object")
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
