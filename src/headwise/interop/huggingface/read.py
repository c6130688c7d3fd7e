"""A published model as one of ours: settings, weights and tokenizers, checked against each other before any is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.bundle.weights import declared_shapes
from headwise.errors import HeadwiseError, ModelError
from headwise.interop.huggingface.layout import Architecture, Key, Layout, Tokenized, layout_of
from headwise.interop.huggingface.published import Published, licence_of, open_published
from headwise.text.tokenizer import TokenizerPair

GOLDEN = "headwise_golden"  # in a config.json that Headwise wrote: ids of an input and of the model's answer


@dataclass(frozen=True)
class Imported:
    """What a model directory of ours is made from."""

    family: str
    task: str
    architecture: Architecture
    weights: dict[str, Tensor]
    tokenizers: TokenizerPair
    languages: tuple[str, ...]
    origin: dict[str, Any]  # for the card
    golden: dict[str, list[int]] | None  # an input and the answer that it must get, in our ids


def read_model(folder: Path) -> Imported:
    """Reads a directory in the Hub's layout."""
    published = open_published(folder)
    config, layout = published.config, layout_of(published.config)
    settings = layout.read_config(config)
    tokenized = layout.tokenizers(folder, config)
    numbering = tokenized.numbering
    architecture = {**settings, "absent": numbering.absent, **layout.sizes(numbering)}
    keys = layout.all_keys(architecture, published.tensors) if _plausible(published, architecture) else []
    _check_names(published, layout, keys)
    _check_shapes(published, layout, architecture, keys)
    order, width = torch.tensor(numbering.order), layout.width_order(architecture)
    weights = {key.ours: key.to_ours(published.read(key.theirs), order, width) for key in keys}
    for name, tensor in weights.items():
        if not bool(tensor.isfinite().all()):
            raise ModelError(f"{folder}: {name} has numbers that are NaN or infinite; take another copy of the model")
    return Imported(
        layout.family, layout.task, architecture, weights, tokenized.pair, languages_of(folder, config.values),
        _origin(published, tokenized), _golden(config.values, numbering.order, numbering.absent),
    )  # fmt: skip


def _plausible(published: Published, architecture: Architecture) -> bool:
    """A config may ask for any number of layers: there must be a tensor for each, before names are made for them."""
    layers = sum(value for name, value in architecture.items() if name.endswith("layers"))
    if layers > len(published.tensors):
        raise ModelError(
            f"{published.config.file} declares {layers} layers, but the weights are {len(published.tensors)} tensors"
        )
    return True


def _check_names(published: Published, layout: Layout, keys: list[Key]) -> None:
    wanted = {name for key in keys for name in key.theirs}
    missing = sorted(wanted - published.tensors.keys())
    extra = sorted(name for name in published.tensors.keys() - wanted if not layout.is_ignored(name))
    for problem, names in (("lacks", missing), ("has the unknown weights", extra)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise ModelError(
                f"{published.path} {problem} {names[0]}{more}; its weights are not those of {layout.class_name}"
            )


def _check_shapes(published: Published, layout: Layout, architecture: Architecture, keys: list[Key]) -> None:
    try:
        declared = declared_shapes(published.config.file, layout.family, architecture)
    except ModelError:
        raise
    except HeadwiseError as error:
        raise ModelError(f"{published.config.file}: {error}") from error
    for key in keys:
        shapes = [published.tensors[name].shape for name in key.theirs]
        if key.shape(shapes) != declared.get(key.ours):
            raise ModelError(
                f"{published.tensors[key.theirs[0]].file}: {key.theirs[0]} has the shape {list(shapes[0])}, "
                f"which disagrees with {published.config.file.name}"
            )


def languages_of(folder: Path, config: Mapping[str, Any]) -> tuple[str, ...]:
    """The two languages that tokenizer_config.json names, where it does."""
    from headwise.bundle.directory import read_json

    file = folder / "tokenizer_config.json"
    values = read_json(file) if file.is_file() else {}
    pair = values.get("source_lang"), values.get("target_lang")
    return tuple(str(name) for name in pair) if all(isinstance(name, str) and name for name in pair) else ()


def _origin(published: Published, tokenized: Tokenized) -> dict[str, Any]:
    values = published.config.values
    return {
        "format": "huggingface",
        "source": published.path.name,
        "model_type": values.get("model_type"),
        "name": values.get("_name_or_path") or None,
        "licence": licence_of(published.path),
        "tokenizers": [origin.as_dict() for origin in tokenized.origins],
    }


def _golden(config: Mapping[str, Any], order: list[int], absent: int) -> dict[str, list[int]] | None:
    """What an export of ours promises of itself, in our ids."""
    promised, ours = config.get(GOLDEN), {published: number for number, published in enumerate(order, absent)}
    if not isinstance(promised, dict):
        return None
    try:
        return {side: [ours[int(token)] for token in promised[side]] for side in ("input", "output")}
    except (KeyError, TypeError, ValueError):
        return None
