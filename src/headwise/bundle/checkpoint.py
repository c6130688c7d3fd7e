"""Checkpoints: a model directory plus all that training needs to go on as if it had never stopped.

    checkpoints/step-00001000/
        model/                  a model directory like any other
        training.safetensors    weights, optimizer, moving average
        training.json           counters, data cursor, what the hooks remember
        manifest.json           the SHA-256 of every file, written last

Each is a new directory, synced and then renamed, so a run may be killed at any moment, inside a save too.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from headwise.bundle.directory import read_json, write_directory, write_json
from headwise.errors import HeadwiseError, ModelError
from headwise.files import file_hash

MANIFEST, STATE, TENSORS, MODEL = "manifest.json", "training.json", "training.safetensors", "model"
_NAME = re.compile(r"step-(\d{8,})")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk, checked against its manifest."""

    path: Path
    state: dict[str, Any]

    @property
    def model(self) -> Path:
        return self.path / MODEL

    @property
    def step(self) -> int:
        return int(self.state["step"])

    def each_tensor(self) -> Iterator[tuple[str, Tensor]]:
        """One at a time: who keeps only a part of each needs no memory for all."""
        path = self.path / TENSORS
        try:
            with safe_open(path, framework="pt") as stored:
                for name in stored.keys():  # noqa: SIM118
                    yield name, stored.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{path} cannot be read: {error}") from error


def checkpoint_path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}"


def save_checkpoint(
    folder: Path, step: int, save_model: Callable[[Path], None], tensors: dict[str, Tensor], state: dict[str, Any]
) -> Path:
    """Writes checkpoints/step-…; `save_model` fills the model directory that it is given."""
    final = checkpoint_path(folder, step)

    def fill(new: Path) -> None:
        save_model(new / MODEL)
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, new / TENSORS)
        write_json(new / STATE, state)
        names = sorted(str(p.relative_to(new)) for p in new.rglob("*") if p.is_file())
        write_json(new / MANIFEST, {"files": {name: file_hash(new / name) for name in names}})

    write_directory(final, fill)
    return final


def list_checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """(step, path), oldest first; what a killed save left behind does not count."""
    if not folder.is_dir():
        return []
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    return sorted(found)


def open_checkpoint(path: Path) -> Checkpoint:
    """Checks every file against the manifest."""
    manifest = read_json(path / MANIFEST)
    files = manifest.get("files")
    if not isinstance(files, dict) or STATE not in files or TENSORS not in files:
        raise ModelError(f"{path} is damaged: its manifest does not list its files")
    for name, digest in files.items():
        place = path / name
        if len(name) > 255 or not place.resolve().is_relative_to(path.resolve()):
            raise ModelError(f"{path} names a file outside itself: {name!r}")
        if not os.path.isfile(place):
            raise ModelError(f"{path} is damaged: {name} is missing")
        try:
            found = file_hash(place)
        except OSError as error:
            raise ModelError(f"{place} cannot be read: {error.strerror}") from error
        if found != digest:
            raise ModelError(f"{path} is damaged: {name} does not have the hash that was written")
    return read_checkpoint(path)


def read_checkpoint(path: Path) -> Checkpoint:
    """One that is known to be whole, because another process has just checked it."""
    return Checkpoint(path, read_json(path / STATE))


def newest_good(folder: Path, on_damaged: Callable[[HeadwiseError], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole; each newer one that is not is told to `on_damaged`."""
    for _, path in reversed(list_checkpoints(folder)):
        try:
            return open_checkpoint(path)
        except ModelError as error:
            on_damaged(error)
    return None


def remove_leftovers(folder: Path) -> None:
    """What a killed save left: unfinished directories, and old ones that were being deleted."""
    for path in _leftovers(folder):
        shutil.rmtree(path, ignore_errors=True)


def _leftovers(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in folder.iterdir() if re.fullmatch(r"\..+\.(new|old)-\d+", path.name))


def load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    return tensors
