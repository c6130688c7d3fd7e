"""Model directories that somebody has tampered with: every kind of file, altered in many ways, hashes put right."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from headwise.bundle.declaration import config_hash
from headwise.files import file_hash

ODD: list[Any] = [
    0, -1, 1, 3, 7, 1.5, 1e9, 10**9, 10**30, 2**31, 2**63, "x", "", None, True, [], {}, [1], {"a": 1}, "x" * 300,
    float("nan"), float("inf"), "\ud800", "../../x", ["en", ["de"]], [None, None], ["x" * 400, "de"],
    ["e\nn", "d\x00e"],
]  # fmt: skip
STEPS: list[Any] = [
    {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}] * 12},
    {"type": "Prepend", "prepend": "b" * 1_000_000},
    {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""},
    {"type": "Replace", "pattern": {"String": ""}, "content": "aa"},
    {"type": "NoSuchThing"},
    {"type": "Sequence", "normalizers": [{"type": "NFKD"}] * 1000},
    7,
]
HEADERS: list[bytes] = [  # of model.safetensors: the length of the JSON, the JSON, the data
    b"", b"\x00", b"\xff" * 8, struct.pack("<Q", 2**40) + b"{}", struct.pack("<Q", 2) + b"{}",
    *(
        struct.pack("<Q", len(header)) + header + b"\x00" * 64
        for header in (
            b"[]", b"null", b'{"a":' * 9000 + b"1" + b"}" * 9000,
            b'{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,64]}}',
            b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,64]}}',
            b'{"a":{"dtype":"F32","shape":[16],"data_offsets":[64,0]}}',
            b'{"a":{"dtype":"F32","shape":[16],"data_offsets":[0,18446744073709551615]}}',
            b'{"a":{"dtype":"F32","shape":[16],"data_offsets":[0,64]},"b":{"dtype":"F32","shape":[16],"data_offsets":[0,64]}}',
            b'{"a":{"dtype":"X9","shape":[16],"data_offsets":[0,64]}}',
        )
    ),
]  # fmt: skip
Change = Callable[[Path], None]


def sign(directory: Path, config: dict[str, Any] | None = None) -> None:
    """Makes all hashes right again, as an attacker would."""
    values = json.loads((directory / "config.json").read_text()) if config is None else config
    values.pop("sha256", None)
    if isinstance(values.get("files"), dict):
        for name in values["files"]:
            if os.path.isfile(directory / name):
                values["files"][name] = file_hash(directory / name)
    values["sha256"] = config_hash(values)
    (directory / "config.json").write_text(json.dumps(values))


def in_config(value: Any, *keys: str) -> Change:
    def change(directory: Path) -> None:
        config = json.loads((directory / "config.json").read_text())
        inner = config
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        sign(directory, config)

    return change


def in_json(name: str, value: Any, *keys: str) -> Change:
    def change(directory: Path) -> None:
        values = json.loads((directory / name).read_text())
        inner = values
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        (directory / name).write_text(json.dumps(values))
        sign(directory)

    return change


def in_weights(alter: Callable[[dict[str, Any]], None]) -> Change:
    def change(directory: Path) -> None:
        weights = {name: tensor.copy() for name, tensor in load_file(directory / "model.safetensors").items()}
        alter(weights)
        save_file(weights, directory / "model.safetensors")
        sign(directory)

    return change


def in_header(content: bytes) -> Change:
    def change(directory: Path) -> None:
        (directory / "model.safetensors").write_bytes(content)
        sign(directory)

    return change


def in_place_of(name: str, make: Callable[[Path], None]) -> Change:
    """Another kind of file where an ordinary one was."""

    def change(directory: Path) -> None:
        place = directory / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        make(place)

    return change


def _large(place: Path) -> None:
    with open(place, "wb") as stream:
        stream.truncate(100 << 20)


def _deep(place: Path) -> None:
    place.write_text('{"a":' * 50_000 + "1" + "}" * 50_000)


OTHER_FILES: list[Callable[[Path], None]] = [
    os.mkfifo,
    lambda place: place.symlink_to("/dev/zero"),
    lambda place: place.symlink_to(place.name),
    Path.mkdir,
    _large,
    _deep,
    Path.touch,
    lambda place: place.write_bytes(b"\xff" * 1000),
]


def _set(value: float) -> Change:
    def alter(weights: dict[str, Any]) -> None:
        for tensor in weights.values():
            tensor.flat[0] = value

    return in_weights(alter)


def _retype(kind: Any) -> Change:
    def alter(weights: dict[str, Any]) -> None:
        weights.update({name: tensor.astype(kind) for name, tensor in weights.items()})

    return in_weights(alter)


def _reshape(weights: dict[str, Any]) -> None:
    weights.update({name: tensor.reshape(-1) for name, tensor in weights.items()})


def _clear(weights: dict[str, Any]) -> None:
    weights.clear()


def changes(directory: Path) -> Iterator[tuple[str, Change]]:
    """(what it is, how to do it) for every alteration."""
    config = json.loads((directory / "config.json").read_text())
    for name in config["architecture"]:
        yield from ((f"{name} = {value!r:.30}", in_config(value, "architecture", name)) for value in ODD)
    for name in ("format", "family", "task", "architecture", "languages", "decoding", "precision", "files", "more"):
        yield from ((f"{name} = {value!r:.30}", in_config(value, name)) for value in ODD)
    for name in ("beam", "length_penalty", "max_extra", "unknown"):
        yield from ((f"decoding.{name} = {value!r:.30}", in_config(value, "decoding", name)) for value in ODD)
    for name in ("calibration", "scores", "about", "data", "title", "validation", "headwise", "recipe"):
        yield from ((f"card.{name} = {value!r:.30}", in_json("card.json", value, name)) for value in ODD)
    for name in ("normalizer", "pre_tokenizer", "decoder", "model", "added_tokens", "post_processor", "padding"):
        steps = STEPS if name in ("normalizer", "pre_tokenizer", "decoder") else []
        found = [*ODD, *steps]
        yield from ((f"tokenizer.{name} = {value!r:.30}", in_json("tokenizer.json", value, name)) for value in found)
    for name in ("vocab", "type", "unk_token", "merges"):
        yield from (
            (f"tokenizer.model.{name} = {value!r:.30}", in_json("tokenizer.json", value, "model", name))
            for value in ODD
        )
    for file in ("labels.json", "preprocessing.json"):
        names = json.loads((directory / file).read_text()) if (directory / file).is_file() else {}
        for name in (*names, "more") if names else ():
            yield from ((f"{file}: {name} = {value!r:.30}", in_json(file, value, name)) for value in ODD)
    export = ("ctranslate2/int8/export.json", "ctranslate2/.int8.lock", "ctranslate2/int8/model.bin", "ctranslate2")
    for name in (*sorted(path.name for path in directory.iterdir() if path.is_file()), *export):
        for number, make in enumerate(OTHER_FILES):
            yield f"{name} is another file ({number})", in_place_of(name, make)
    yield from ((f"the header of the weights: {value!r:.40}", in_header(value)) for value in HEADERS)
    for value in (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45):
        yield f"a weight is {value}", _set(value)
    for kind in (np.float16, np.float64, np.int8, np.int32, np.uint8, bool):
        yield f"weights of type {kind}", _retype(kind)
    yield "weights in one row", in_weights(_reshape)
    yield "no weights", in_weights(_clear)


def some(directory: Path, count: int, seed: int) -> list[tuple[str, Change]]:
    """`count` of them, drawn at random, all where there are not more."""
    found = list(changes(directory))
    return found if count >= len(found) else random.Random(seed).sample(found, count)
