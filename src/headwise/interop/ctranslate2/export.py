"""A model directory as a CTranslate2 model: the fast engine for CPUs.

What is written, beside CTranslate2's own files (model.bin, config.json, the vocabularies):

    export.json     all that it was made from (family, architecture, the SHA-256 of weights and tokenizers), and the
                    SHA-256 of each file that was written
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from headwise.bundle.assets import PREPROCESSING, read_preprocessing
from headwise.bundle.declaration import LARGEST_SETTING
from headwise.bundle.directory import (
    LARGEST_JSON,
    TOKENIZERS,
    WEIGHTS,
    Bundle,
    check_files,
    read_json,
    write_directory,
    write_json,
)
from headwise.errors import HeadwiseError, ModelError, UsageError
from headwise.files import file_hash
from headwise.interop.ctranslate2 import families
from headwise.interop.ctranslate2.parts import Array, Weights
from headwise.interop.readme import readme
from headwise.text.tokenizer import TokenizerPair

PRECISIONS = ("float32", "int8")
MANIFEST, MODEL = "export.json", "model.bin"
_LARGER = 8  # than the weights: so large an export can be, with float32 for float16 and a table of positions
_LARGEST_MANIFEST = 1 << 20  # bytes
# Raised whenever the same weights would be written differently: an older export is then made anew.
REVISION = 2
# The largest int8 weight. Without VNNI, processors add two products of a weight and an activation of up to 255 in 16
# bits, and what does not fit is cut off: 2 · 255 · 64 does. The bit that is given up costs far less.
LARGEST_INT8 = 64
# CTranslate2 reads a position from a table, which has an end: the longest input and output, in tokens.
POSITIONS, MOST_POSITIONS = 2048, 1 << 14


def export(
    bundle: Bundle,
    tokenizers: TokenizerPair,
    directory: Path,
    precision: str = "int8",
    positions: int = 0,
    *,
    complete: bool = False,
) -> None:
    """Writes `directory` whole or not at all, replacing an older one.

    `positions`: the table's length, 0 for ample. `complete`: with tokenizers and an example, for use without Headwise.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"unknown precision '{precision}'; there are {', '.join(PRECISIONS)}")
    if reason := cannot_export(bundle):
        raise UsageError(f"{bundle.path} cannot be exported: {reason}; use the torch engine")
    from headwise.bundle.golden import GOLDEN  # torch, which CTranslate2's converter needs too
    from headwise.bundle.weights import check_weights, load_model

    if GOLDEN in bundle.card:
        load_model(bundle)  # an imported model must still give its golden answer
    else:
        check_weights(bundle)
    family = _family(bundle.family)
    assert family is not None
    weights = _read_weights(bundle)
    sizes, preprocessing = _sizes(bundle), read_preprocessing(bundle.path)
    # What the special tokens of a speech model mean: for families that ask for it.
    told = {"preprocessing": preprocessing} if getattr(family, "TAKES_PREPROCESSING", False) else {}
    if sizes.get("positions") != "learned":  # learned ones end where they end
        sizes = {**sizes, "max_length": positions or table_length(sizes)}

    def fill(new: Path) -> None:
        from ctranslate2 import specs  # imports torch, which takes a second or two: an export is made once

        spec = family.build(specs, sizes, weights, tokenizers, **told)
        spec.validate()
        spec.optimize(quantization="float32")
        if precision == "int8":
            specs.model_spec.visit_spec(spec, partial(_to_int8, specs.model_spec.NumpyVariable))
        spec.save(str(new))
        if complete:
            tokenizers.save(new)
            if preprocessing:
                write_json(new / PREPROCESSING, preprocessing)
            example = family.example(sizes, tokenizers) if hasattr(family, "example") else ""
            (new / "README.md").write_text(readme(bundle, "CTranslate2", example), encoding="utf-8")
        files = {path.name: file_hash(path) for path in sorted(new.iterdir())}
        write_json(
            new / MANIFEST,
            {
                **origin(bundle),
                **_told(bundle),
                "precision": precision,
                "positions": int(sizes["max_length"]),
                "files": files,
            },
        )

    try:
        write_directory(directory, fill)
    except KeyError as error:
        raise ModelError(f"{bundle.path / WEIGHTS} does not fit its architecture: {error} is missing") from error


def table_length(architecture: dict[str, Any]) -> int:
    """The number of positions of an export for which none was asked: its longest input and output, in tokens."""
    longest = int(architecture.get("max_length", 0))
    return longest if architecture.get("positions") == "learned" else min(max(POSITIONS, longest), MOST_POSITIONS)


def cannot_export(bundle: Bundle) -> str | None:
    """Why CTranslate2 cannot run this model; None: it can."""
    family = _family(bundle.family)
    if family is None:
        return f"ctranslate2 has no model of family '{bundle.family}'"
    lacks: Callable[[dict[str, Any]], str | None] = getattr(family, "lacks", lambda sizes: None)
    missing = lacks(_sizes(bundle))
    return f"ctranslate2 has no {missing.removeprefix('an ').removeprefix('a ')}" if missing else None


def _sizes(bundle: Bundle) -> dict[str, Any]:
    """All settings: an imported model may declare only those that its files name."""
    return {**bundle.settings.model_dump(mode="json"), **bundle.architecture}


def _family(name: str) -> ModuleType | None:
    if name not in {module.name for module in pkgutil.iter_modules(families.__path__)}:
        return None
    return importlib.import_module(f"{families.__name__}.{name}")


def is_current(bundle: Bundle, directory: Path, precision: str) -> bool:
    """Is there a whole export of exactly this model? A stale, damaged or half one is not."""
    try:
        manifest = read_json(directory / MANIFEST, _LARGEST_MANIFEST)
        wanted = {**origin(bundle), "precision": precision}
        if any(manifest.get(key) != value for key, value in wanted.items()):
            return False
        files, positions = dict(manifest["files"]), manifest["positions"]
        if MODEL not in files or type(positions) is not int or not 0 < positions <= LARGEST_SETTING:
            return False
        check_files(directory, files, most=_LARGER * os.path.getsize(bundle.path / WEIGHTS) + LARGEST_JSON)
    except (HeadwiseError, OSError, KeyError, TypeError, ValueError):
        return False
    return True


def origin(bundle: Bundle) -> dict[str, Any]:
    """All that decides what an export is, beside its precision: another architecture is another export."""
    made_from = {name: digest for name, digest in bundle.files.items() if name in (WEIGHTS, *TOKENIZERS, PREPROCESSING)}
    return {
        "revision": REVISION, "family": bundle.family, "architecture": bundle.architecture, "made_from": made_from
    }  # fmt: skip


def _told(bundle: Bundle) -> dict[str, Any]:
    """What decides nothing, but belongs to the model if it is imported again."""
    told = {"task": bundle.task_name, "languages": list(bundle.languages), "origin": bundle.card.get("origin")}
    return {name: value for name, value in told.items() if value}


def _read_weights(bundle: Bundle) -> Weights:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        loaded = load_file(bundle.path / WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{bundle.path / WEIGHTS} cannot be read: {error}") from error
    return {name: np.ascontiguousarray(tensor, dtype=np.float32) for name, tensor in loaded.items()}


def _to_int8(variable: type, layer: Any, path: str, value: Any) -> None:
    """Called for each part of a spec: weights that have a scale become int8, with one scale per row."""
    name = path.split("/")[-1]
    if not hasattr(layer, f"{name}_scale") or isinstance(value, str):  # a string is the name of an equal one
        return
    matrix: Array = value.numpy()
    if matrix.ndim != 2:  # convolutions are a small part of the time
        return
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    scale = LARGEST_INT8 / np.maximum(largest, 1e-30)
    setattr(layer, name, variable(np.rint(matrix * scale).astype(np.int8)))
    setattr(layer, f"{name}_scale", variable(scale[:, 0].astype(np.float32)))
