"""Exports of Headwise, read back: what they were made from stands in their export.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from headwise.bundle.assets import Assets, read_preprocessing
from headwise.bundle.directory import check_files
from headwise.config.families import find_family
from headwise.errors import ModelError
from headwise.interop.ctranslate2.directory import Directory, Rows, read_weights
from headwise.interop.ctranslate2.export import MANIFEST
from headwise.interop.huggingface.published import licence_of
from headwise.interop.imported import Imported
from headwise.interop.keys import Key, Orders
from headwise.text.tokenizer import TokenizerPair

# Which row of the export each of our tokens has, and what rows there are besides; (architecture, preprocessing) ->
Arrange = Callable[[dict[str, Any], Mapping[str, Any]], tuple[Orders, dict[str, Rows]]]


def in_our_order(architecture: dict[str, Any], preprocessing: Mapping[str, Any]) -> tuple[Orders, dict[str, Rows]]:
    """Most exports have all of our tokens in our order, those without a vector too."""
    absent, names = int(architecture.get("absent", 0)), ("source", "target")
    sizes = {side: int(architecture.get(f"{side}_vocab", architecture.get("vocab", 0))) for side in names}
    return Orders({side: torch.arange(absent, size) for side, size in sizes.items()}), {}


def read_own(
    directory: Directory,
    keys: Callable[[dict[str, Any]], Iterable[Key]],
    settings: Iterable[str],
    family: str,
    arrange: Arrange = in_our_order,
) -> Imported:
    """The model that was exported; bit for bit, if the export is float32."""
    manifest, file = directory.manifest, directory.path / MANIFEST
    architecture = manifest.get("architecture")
    if manifest.get("family") != family or not isinstance(architecture, dict):
        raise ModelError(f"{file} is damaged: its family or architecture is not that of the model; take another copy")
    if not isinstance(manifest.get("files"), dict):
        raise ModelError(f"{file} is damaged: it does not list its files; take another copy")
    check_files(directory.path, {str(name): str(digest) for name, digest in manifest["files"].items()}, most=None)
    if not any(directory.path.glob("*tokenizer.json")):
        raise ModelError(f"{directory.path} has no tokenizer.json; export the model again, with this version")
    pair, declared = TokenizerPair.load(directory.path), find_family(family)
    assert declared is not None
    sizes = {name: architecture.get(name) for name in declared.sizes}
    for name, size in sizes.items():
        found = pair.source.size if name.startswith("source") else pair.target.size
        if size != found:
            raise ModelError(
                f"{file} declares {name} = {size}, but the tokenizer has {found} tokens; take another copy"
            )
    try:
        whole = declared.settings.of({name: v for name, v in architecture.items() if name not in sizes})
    except ValueError as error:
        raise ModelError(f"{file} declares an impossible architecture: {error}") from None
    architecture = {**sizes, **whole.model_dump(mode="json")}
    preprocessing = read_preprocessing(directory.path)
    orders, rows = arrange(architecture, preprocessing)
    weights = read_weights(directory, family, architecture, keys(architecture), orders, rows=rows, settings=settings)
    told = manifest.get("origin")
    origin = {"licence": licence_of(directory.path), **(told if isinstance(told, dict) else {})}
    languages = manifest.get("languages")
    return Imported(
        family, str(manifest.get("task") or declared.tasks[0]), architecture, weights,
        Assets(pair, preprocessing=preprocessing),
        tuple(map(str, languages)) if isinstance(languages, list) else (),
        origin={**origin, "format": "ctranslate2", "source": directory.path.name},
    )  # fmt: skip
