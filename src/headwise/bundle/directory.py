"""A model directory on disk: JSON and safetensors, hashed, written whole or not at all. Needs no torch.

    config.json          format version, family, task, architecture, languages, decoding defaults, precision, the
                         SHA-256 of the other files, and its own
    model.safetensors    the weights
    tokenizer.json       (or source.tokenizer.json and target.tokenizer.json)
    card.json            recipe, data fingerprints, scores with their signatures

`config.json` is written last and holds the hashes, so a directory with a config is a whole one. Its `precision` says
how the weights are stored: float32 (also where it is not given), or float16, half the size, which becomes float32 when
it is loaded: models that ship with Headwise are stored so.

`open_bundle` is the one way in, for every command and engine. Nothing that a directory declares is believed: files are
ordinary ones of bounded size, read once, compared with their hash and only then parsed; what they say must have the
right types, be possible, and agree with the weights and tokenizers that are there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from headwise.bundle.declaration import HASH, Declaration, check_card, config_hash, read_declaration
from headwise.bundle.shipped import locate, shipped_directories
from headwise.bundle.stored_weights import check_sizes, checked_hash, count_weights, stored_shapes
from headwise.config.families import family_names, find_family
from headwise.config.family import Family, Settings
from headwise.errors import ModelError, ShapeError, WorkFailed
from headwise.files import check_name, file_hash, read_bounded, sync
from headwise.text.tokenizer_file import LARGEST_FILE, read_tokenizer

FORMAT_VERSION = 1
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "card.json"
TOKENIZERS = ("tokenizer.json", "source.tokenizer.json", "target.tokenizer.json")
PRECISIONS = ("float32", "float16")  # in which weights are stored
LARGEST_JSON = 64 << 20  # bytes; a card has a sketch of the training data
_LARGEST_CONFIG = 1 << 20


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
    """Reads and checks a model directory, that of a run, or a shipped model by its name.

    `verify`: every file must have its hash.
    """
    check_name(path)
    path = locate(path)
    if not os.path.isfile(path / CONFIG):
        place = f"{path} is not there" if not path.exists() else f"{path} has no {CONFIG}"
        names = ", ".join(shipped_directories())
        others = f", or a model that came with Headwise: {names}" if names else ""
        raise ModelError(f"no model: {place}; give a model directory, such as RUN/model{others}")
    config = read_json(path / CONFIG, _LARGEST_CONFIG)
    declared = _declaration(config, path / CONFIG)
    _check_names(path, declared.files)
    card = parse_json(path / CARD, _content(path, CARD, declared.files, LARGEST_JSON, verify))
    check_card(card, path / CARD)
    bundle = Bundle(
        path, declared.family, declared.architecture, tuple(declared.languages), declared.decoding, card,
        declared.files, declared.precision, declared.task,
    )  # fmt: skip
    _check_declared(bundle)
    if declared.sha256 is not None and declared.sha256 != config_hash(config):  # older directories have none
        raise ModelError(
            f"{path / CONFIG} is damaged: it does not have its own hash; take another copy (if you have edited it, "
            f"delete its line '{HASH}')"
        )
    if verify:
        _check_contents(bundle)
    return bundle


def _declaration(config: dict[str, Any], file: Path) -> Declaration:
    version = config.get("format")
    if type(version) is not int:
        raise ModelError(f"{file} is not a Headwise model: it has no format version")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{file.parent} has model format {version}, this version reads up to {FORMAT_VERSION}; upgrade headwise"
        )
    declared = read_declaration(config, file)
    if declared.precision not in PRECISIONS:
        raise ModelError(f"{file}: precision must be one of {', '.join(PRECISIONS)}, not {declared.precision!r}")
    return declared


def _check_declared(bundle: Bundle) -> None:
    """What config.json says by itself: a known family, hyperparameters in their range, a task of the family."""
    file, family = bundle.path / CONFIG, bundle.declared
    _ = bundle.settings
    if bundle.task_name not in family.tasks:
        known = ", ".join(family.tasks)
        raise ModelError(f"{file}: task '{bundle.task_name}' is not one of family '{bundle.family}': {known}")
    for name in family.sizes:
        value, least = bundle.architecture.get(name), 1 if name.endswith("vocab") else 0
        if value is None and not least:
            continue  # a network without that output
        if type(value) is not int or value < least:
            raise ModelError(
                f"{file} declares an impossible architecture: {name} must be {least} or more, not {value!r}"
            )


def _check_contents(bundle: Bundle) -> None:
    """The other files: each has its hash, and their sizes are those that config.json declares."""
    path, sizes = bundle.path, bundle.declared.sizes
    vocabularies = {}
    for name in TOKENIZERS:
        if name in bundle.files:
            content = _content(path, name, bundle.files, LARGEST_FILE)
            vocabularies[name] = read_tokenizer(path / name, content).size
    for size in sizes:
        wanted, found = bundle.architecture[size], _vocabulary_of(size, vocabularies)
        if found is not None and wanted != found:
            raise ModelError(f"{path / CONFIG} declares {size} = {wanted}, but its tokenizer has {found} tokens")
    check_sizes(path / WEIGHTS, stored_shapes(path / WEIGHTS, bundle.precision), bundle.architecture, sizes)
    if checked_hash(path / WEIGHTS, bundle.precision) != bundle.files[WEIGHTS]:
        raise _wrong_hash(path, WEIGHTS)
    others = {name: digest for name, digest in bundle.files.items() if name not in (CARD, WEIGHTS, *TOKENIZERS)}
    check_files(path, others)


def _vocabulary_of(size: str, vocabularies: dict[str, int]) -> int | None:
    """`source_vocab` is the number of tokens of source.tokenizer.json, or of the one that there is."""
    if not size.endswith("vocab"):
        return None
    side = size.removesuffix("_vocab") if size.endswith("_vocab") else "target"
    return vocabularies.get(f"{side}.tokenizer.json", vocabularies.get(TOKENIZERS[0]))


def parameter_count(bundle: Bundle) -> int:
    """Number of weights, from the header of their file alone."""
    return count_weights(stored_shapes(bundle.path / WEIGHTS, bundle.precision))


def check_files(
    directory: Path, files: dict[str, str], *, contents: bool = True, most: int | None = LARGEST_JSON
) -> None:
    """Every named file must be in `directory` itself and, with `contents`, have its hash and at most `most` bytes."""
    for name, digest in files.items():
        if Path(name).name != name:
            raise ModelError(f"{directory} names a file outside itself: {name!r}")
        if not os.path.isfile(directory / name):
            raise ModelError(f"{directory} is damaged: {name} is missing; take another copy")
        if contents and _hash(directory / name, most) != digest:
            raise _wrong_hash(directory, name)


def _hash(file: Path, most: int | None) -> str:
    try:
        return file_hash(file, most)
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}; take another copy") from error


def _check_names(directory: Path, files: dict[str, str]) -> None:
    """All files that are used are among those that have a hash."""
    check_files(directory, files, contents=False)
    needed = [CARD, WEIGHTS, *(name for name in TOKENIZERS if os.path.lexists(directory / name))]
    if lacking := [name for name in needed if name not in files]:
        raise ModelError(f"{directory / CONFIG} is damaged: it has no hash of {lacking[0]}; take another copy")


def _content(directory: Path, name: str, files: dict[str, str], most: int, verify: bool = True) -> bytes:
    """A file that is read once; it must have its hash before anybody parses it."""
    try:
        content = read_bounded(directory / name, most)
    except OSError as error:
        raise ModelError(f"{directory / name} cannot be read: {error.strerror}; take another copy") from error
    if verify and hashlib.sha256(content).hexdigest() != files[name]:
        raise _wrong_hash(directory, name)
    return content


def _wrong_hash(directory: Path, name: str) -> ModelError:
    return ModelError(f"{directory} is damaged: {name} does not have the hash that was written; take another copy")


def write_config(directory: Path, bundle: Bundle, hashed: Mapping[str, str] | None = None) -> None:
    """Finishes a model directory: the card, then the hashes of all files, then config.json.

    `hashed` are the hashes that are known already, by file name.
    """
    write_json(directory / CARD, bundle.card)
    known = hashed or {}
    names = sorted(p.name for p in directory.iterdir() if p.is_file() and p.name != CONFIG)
    config: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "family": bundle.family,
        "task": bundle.task_name,
        "architecture": bundle.architecture,
        "languages": list(bundle.languages),
        "decoding": bundle.decoding,
        "precision": bundle.precision,
        "files": {name: known.get(name) or file_hash(directory / name) for name in names},
    }
    write_json(directory / CONFIG, {**config, HASH: config_hash(config)})


def write_directory(final: Path, fill: Callable[[Path], None]) -> None:
    """Calls `fill` with a new directory beside `final`, syncs it, and renames it into place: there or not, never half.

    An older `final` is moved away first and deleted last.
    """
    new = final.with_name(f".{final.name}.new-{os.getpid()}")
    old = final.with_name(f".{final.name}.old-{os.getpid()}")
    shutil.rmtree(new, ignore_errors=True)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
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
        if os.path.exists(old) and not os.path.exists(final):
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


def read_json(path: Path, most: int = LARGEST_JSON) -> dict[str, Any]:
    """A JSON object from an ordinary file of at most `most` bytes."""
    try:
        content = read_bounded(path, most)
    except FileNotFoundError:
        raise ModelError(f"{path.parent} is damaged: {path.name} is missing; take another copy") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    return parse_json(path, content)


def parse_json(path: Path, content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content.decode())
        if b"\\ud" in content.lower():  # half of a surrogate pair cannot be written or printed
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} is damaged: it must hold a JSON object")
    return value


def write_json(path: Path, value: dict[str, Any] | list[Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
