"""A published model on disk: its config and the headers of its weights. Nothing is unpickled, nothing is allocated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from headwise.bundle.directory import read_json
from headwise.errors import ModelError
from headwise.files import opened_file

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")
MOST_LABELS = 100_000
_LFS = b"version https://git-lfs"  # how the file begins that stands in for one that was not fetched
_NUMBERS = ("F64", "F32", "F16", "BF16")  # kinds of numbers that become float32


class Config:
    """config.json, read value by value; what does not fit is one line that names the file and the key."""

    def __init__(self, file: Path, values: Mapping[str, Any]) -> None:
        self.file, self.values = file, values

    def number(self, key: str, default: int | None = None) -> int:
        value = self.values.get(key)
        value = default if value is None else value
        if type(value) is not int or value < 1:
            raise ModelError(f"{self.file}: {key} must be a whole number from 1, not {value!r}")
        return value

    def fraction(self, key: str, default: float) -> float:
        value = self.values.get(key, default)
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise ModelError(f"{self.file}: {key} must be a number from 0 to less than 1, not {value!r}")
        return float(value)

    def epsilon(self, key: str, default: float) -> float:
        value = self.values.get(key, default)
        if not isinstance(value, float) or not 0 < value <= 1e-3:
            raise ModelError(f"{self.file}: {key} must be a small positive number, not {value!r}")
        return value

    def choice(self, key: str, choices: Mapping[str, str], default: str) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or value not in choices:
            raise ModelError(f"{self.file}: {key} = {value!r} is not supported; there are {', '.join(choices)}")
        return choices[value]

    def must(self, key: str, wanted: Any) -> None:
        """For what Headwise has in one way only, which is also the default of the published model."""
        value = self.values.get(key, wanted)
        if value != wanted:
            raise ModelError(f"{self.file}: {key} = {value!r} is not supported, only {wanted!r}")

    def labels(self) -> tuple[str, ...]:
        """Names of classes in the order of the outputs; a model that names none has LABEL_0, LABEL_1, …

        Of two classes with one name (ImageNet has two cranes) the second gets its number. Models that give scores, or
        any number of labels, are refused: they have the same weights, but their outputs mean something else.
        """
        if (kind := self.values.get("problem_type")) not in (None, "single_label_classification"):
            raise ModelError(f"{self.file}: problem_type = {kind!r} is not supported, only one label for each input")
        named = self.values.get("id2label")
        if named is None:
            named = {str(number): f"LABEL_{number}" for number in range(min(self.number("num_labels", 2), MOST_LABELS))}
        if not isinstance(named, dict) or len(named) > MOST_LABELS:
            raise ModelError(f"{self.file}: id2label must name each class by its number")
        found = tuple(named.get(str(number)) for number in range(len(named)))
        if not found or not all(isinstance(name, str) and name for name in found):
            raise ModelError(f"{self.file}: id2label must give the classes 0, 1, 2, … names")
        if len(found) == 1:
            raise ModelError(f"{self.file}: the only label is '{found[0]}': a model of scores is not supported")
        unique: dict[str, int] = {}
        for number, name in enumerate(found):
            unique[f"{name} ({number})" if name in unique else str(name)] = number
        if len(unique) < len(found):
            raise ModelError(f"{self.file}: id2label must give the classes 0, 1, 2, … different names")
        return tuple(unique)

    def token(self, key: str, vocab: int) -> int | None:
        """The id of a special token; None where it is not one of the vocabulary."""
        value = self.values.get(key)
        value = value[0] if isinstance(value, list) and value else value
        return value if type(value) is int and 0 <= value < vocab else None


@dataclass(frozen=True)
class Stored:
    """Where a tensor is, and its size."""

    file: Path
    shape: tuple[int, ...]
    name: str  # in the file


@dataclass(frozen=True)
class Published:
    """A directory in the Hub's layout."""

    path: Path
    config: Config
    tensors: Mapping[str, Stored]

    def read(self, names: Sequence[str]) -> list[Tensor]:
        """As float32."""
        return [self._read(name) for name in names]

    def renamed(self, names: Mapping[str, str]) -> Published:
        """The same tensors under other names: `names` has the present one of each."""
        return replace(self, tensors={new: self.tensors[name] for new, name in names.items()})

    def _read(self, name: str) -> Tensor:
        file = self.tensors[name].file
        try:
            with safe_open(file, framework="pt") as stored:
                tensor: Tensor = stored.get_tensor(self.tensors[name].name)
        except (OSError, SafetensorError) as error:
            raise _damaged(file, error) from error
        return tensor.to(torch.float32)


def open_published(folder: Path) -> Published:
    """Checks that a directory has all it names; reads headers only."""
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a directory; give one with {CONFIG} and {WEIGHTS}")
    if not (folder / CONFIG).is_file():
        raise ModelError(f"{folder} has no {CONFIG}; give a directory in the layout of the Hugging Face Hub")
    config = Config(folder / CONFIG, read_json(folder / CONFIG))
    tensors: dict[str, Stored] = {}
    for file in _weight_files(folder):
        tensors |= _headers(file)
    return Published(folder, config, tensors)


def _weight_files(folder: Path) -> list[Path]:
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        shards = read_json(folder / INDEX).get("weight_map")
        names = sorted({str(name) for name in shards.values()}) if isinstance(shards, dict) else []
        if not names:
            raise ModelError(f"{folder / INDEX} lists no files; take another copy of it")
        for name in names:
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise ModelError(f"{folder / INDEX} names {name!r}, which is not a safetensors file beside it")
            if not (folder / name).is_file():
                raise ModelError(f"{folder} lacks {name}, which {INDEX} names; take another copy of the model")
        return [folder / name for name in names]
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if pickles:
        raise ModelError(
            f"{folder / pickles[0]} is a pickle, which can run code, so it is not opened; convert it to {WEIGHTS} "
            "elsewhere (transformers: from_pretrained, then save_pretrained) or take a copy that has it"
        )
    raise ModelError(f"{folder} has no {WEIGHTS}; take a copy of the model that has it")


def _headers(file: Path) -> dict[str, Stored]:
    try:
        with safe_open(file, framework="pt") as stored:
            slices = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118
            kinds = {name: piece.get_dtype() for name, piece in slices.items()}
            found = {name: Stored(file, tuple(piece.get_shape()), name) for name, piece in slices.items()}
    except (OSError, SafetensorError) as error:
        raise _damaged(file, error) from error
    for name, kind in kinds.items():
        if kind not in _NUMBERS and not name.endswith("position_ids"):  # 0, 1, 2, … in files of older versions
            raise ModelError(f"{file}: {name} is stored as {kind}; Headwise reads {', '.join(_NUMBERS)}")
    return found


def _damaged(file: Path, error: Exception) -> ModelError:
    if file.is_file():
        with opened_file(file) as stream:
            if stream.read(len(_LFS)) == _LFS:
                return ModelError(f"{file} is a pointer of Git LFS, not the weights; fetch them with `git lfs pull`")
    return ModelError(f"{file} is cut off or damaged ({error}); take another copy of it")


def licence_of(folder: Path) -> str | None:
    """The `license:` line at the head of a model's README.md, or config.json's own field."""
    readme = folder / "README.md"
    if readme.is_file():
        head = readme.read_text(encoding="utf-8", errors="replace")[:10_000].split("\n---", 1)[0]
        for line in head.splitlines():
            if line.startswith(("license:", "licence:")):
                return line.split(":", 1)[1].strip().strip("\"'") or None
    try:
        value = json.loads((folder / CONFIG).read_text(encoding="utf-8")).get("license")
    except (OSError, ValueError, AttributeError):
        return None
    return value if isinstance(value, str) else None
