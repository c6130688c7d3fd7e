"""A published model as one of ours: settings, weights and other files, checked before any is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.bundle.directory import read_json
from headwise.bundle.stored_weights import Shapes
from headwise.bundle.weights import declared_shapes
from headwise.errors import HeadwiseError, ModelError
from headwise.interop.huggingface.layout import Architecture, Beside, Layout, layout_of
from headwise.interop.huggingface.published import Published, licence_of, open_published
from headwise.interop.imported import Imported, Weights
from headwise.interop.keys import Key

GOLDEN = "headwise_golden"  # in a config.json that Headwise wrote: the model's answer to a fixed input, in our ids


def read_model(folder: Path) -> Imported:
    """Reads a directory in the Hub's layout."""
    published = open_published(folder)
    layout = layout_of(published.config)
    layout.read_config(published.config)  # what is not supported is said before other files are read
    _check_vocabularies(published)
    try:
        beside = layout.read_beside(folder, published.config)
    except ModelError as error:
        raise error if str(folder) in str(error) else ModelError(f"{folder}: {error}") from error
    return read_published(published, layout, beside)


def read_published(published: Published, layout: Layout, beside: Beside) -> Imported:
    """Reads weights under the names of a layout, wherever they are."""
    folder, config = published.path, published.config
    architecture = {**layout.read_config(config), **layout.sizes(beside)}
    _check_layers(published, architecture)
    keys = {key.ours: key for key in layout.keys(architecture)}
    wanted = {name for key in keys.values() for name in key.names}
    published = published.renamed(layout.today(published.tensors, wanted))
    _check_names(published, layout, wanted)
    shapes = _check_shapes(published, layout, architecture, keys, layout.skipped_rows(beside.numberings))
    _check_constants(published, layout, architecture)
    orders = layout.orders(architecture, beside.numberings)  # as large as the config says: not before the shapes

    def read(name: str) -> Tensor:
        return keys[name].to_ours(published.read(keys[name].names), shapes[name], orders)

    return Imported(
        layout.family, layout.task, architecture, Weights(folder, shapes, read), beside.assets, languages_of(folder),
        {}, _origin(published, beside), config.values.get(GOLDEN),
    )  # fmt: skip


def _check_vocabularies(published: Published) -> None:
    """A config may ask for any number of tokens: there must be a row for each, before they are numbered."""
    most = max((max(tensor.shape, default=1) for tensor in published.tensors.values()), default=0)
    for key in ("vocab_size", "decoder_vocab_size"):
        asked = published.config.values.get(key)
        if isinstance(asked, int) and asked > most:
            raise ModelError(f"{published.config.file}: {key} = {asked}, but no tensor of the weights has so many rows")


def _check_layers(published: Published, architecture: Architecture) -> None:
    """A config may ask for any number of layers: there must be a tensor for each, before names are made for them."""
    layers = sum(value for name, value in architecture.items() if name.endswith("layers") and isinstance(value, int))
    if layers > len(published.tensors):
        raise ModelError(
            f"{published.config.file} declares {layers} layers, but the weights are {len(published.tensors)} tensors"
        )


def _check_names(published: Published, layout: Layout, wanted: set[str]) -> None:
    missing = sorted(wanted - published.tensors.keys())
    extra = sorted(name for name in published.tensors.keys() - wanted if not layout.is_ignored(name))
    for problem, names in (("lacks", missing), ("has the unknown weights", extra)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise ModelError(
                f"{published.path} {problem} {names[0]}{more}; its weights are not those of {layout.class_name}"
            )


def _check_shapes(
    published: Published, layout: Layout, architecture: Architecture, keys: dict[str, Key], skipped: int
) -> Shapes:
    """The shapes of all our weights, for each of which there is one that fits."""
    try:
        declared = declared_shapes(published.config.file, layout.family, architecture)
    except ModelError:
        raise
    except HeadwiseError as error:
        raise ModelError(f"{published.config.file}: {error}") from error
    for key in keys.values():
        shapes = [published.tensors[name].shape for name in key.names]
        if not key.fits(shapes, declared.get(key.ours), skipped):
            raise ModelError(
                f"{published.tensors[key.names[0]].file}: {key.names[0]} has the shape {list(shapes[0])}, "
                f"which disagrees with {published.config.file.name}"
            )
    if lacking := sorted(declared.keys() - keys.keys()):
        raise ModelError(f"{published.path}: nothing is published for {lacking[0]}, which the config asks for")
    return declared


def _check_constants(published: Published, layout: Layout, architecture: Architecture) -> None:
    """Tensors that we do not store, because they are always the same, must be so here too."""
    for name, wanted in layout.constants(architecture).items():
        if name not in published.tensors:
            continue
        same = published.tensors[name].shape == tuple(wanted.shape)
        # Wide enough for what bfloat16 leaves of a number up to 1.
        if not same or not torch.allclose(published.read([name])[0], wanted, atol=0.01, rtol=0):
            raise ModelError(f"{published.tensors[name].file}: {name} is not what {layout.class_name} always has there")


def languages_of(folder: Path) -> tuple[str, ...]:
    """The two languages that tokenizer_config.json names, where it does."""
    file = folder / "tokenizer_config.json"
    values = read_json(file) if file.is_file() else {}
    pair = values.get("source_lang"), values.get("target_lang")
    return tuple(str(name) for name in pair) if all(isinstance(name, str) and name for name in pair) else ()


def _origin(published: Published, beside: Beside) -> dict[str, Any]:
    values = published.config.values
    return {
        "format": "huggingface",
        "source": published.path.name,
        "model_type": values.get("model_type"),
        "name": values.get("_name_or_path") or None,
        "licence": licence_of(published.path),
        "tokenizers": [origin.as_dict() for origin in beside.origins],
    }
