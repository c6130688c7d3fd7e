"""Hugging Face's ViT and our `vit`: with a head for classes, or without one, to be fine-tuned.

The names of weights are those of the files on the Hub; in memory `transformers` has others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import read_json
from headwise.errors import ModelError, UsageError
from headwise.image.preprocessing import Preprocessing
from headwise.interop.huggingface.encoders import read_sizes, write_sizes
from headwise.interop.huggingface.layout import Architecture, Beside, Key, Layout
from headwise.interop.huggingface.published import Config
from headwise.interop.keys import modules, without_prefix

PROCESSOR = "preprocessor_config.json"
_RESAMPLING = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # numbers of Pillow


_LAYER = modules(
    "encoder.layers.{}.", "vit.encoder.layer.{}.",
    {
        "self_residual.norm": "layernorm_before",
        "self_attention.query_key_value": tuple(f"attention.attention.{name}" for name in ("query", "key", "value")),
        "self_attention.output": "attention.output.dense",
        "feed_residual.norm": "layernorm_after",
        "feed_forward.inner": "intermediate.dense",
        "feed_forward.outer": "output.dense",
    },
)  # fmt: skip


def keys(architecture: Architecture) -> Iterator[Key]:
    yield Key("class_token", ("vit.embeddings.cls_token",), published=(1, 1, -1))
    yield Key("positions.weight", ("vit.embeddings.position_embeddings",), published=(1, -1, architecture["model_dim"]))
    yield from modules("", "vit.", {"stem": "embeddings.patch_embeddings.projection", "encoder.norm": "layernorm"})
    for number in range(architecture["layers"]):
        yield from (key.at(number) for key in _LAYER)
    if architecture["classes"]:
        yield from modules("", "", {"output": "classifier"})


def bare_keys(architecture: Architecture) -> Iterator[Key]:
    return without_prefix(keys(architecture), "vit.")


def read_config(config: Config) -> Architecture:
    config.must("qkv_bias", True)
    return {
        "image_size": _side(config, "image_size", 224),
        "patch_size": _side(config, "patch_size", 16),
        "channels": config.number("num_channels", 3),
        **read_sizes(config, dropout=0.0),
        "stem": "patches",
        "positions": "learned",
        "pooling": "cls",
    }


def _side(config: Config, key: str, default: int) -> int:
    """Pictures and patches are squares here; a config may name both sides."""
    value = config.values.get(key, default)
    if isinstance(value, list) and len(value) == 2 and value[0] == value[1]:
        value = value[0]
    if type(value) is not int or value < 1:
        raise ModelError(f"{config.file}: {key} = {value!r} is not supported, only one number for both sides")
    return value


def write_config(architecture: Architecture, classifies: bool = True) -> dict[str, Any]:
    for key, wanted, why in (
        ("stem", "patches", "a ViT has patches, not a convolutional stem (stem = 'patches')"),
        ("positions", "learned", "a ViT has learned positions (positions = 'learned')"),
        ("pooling", "cls", "a ViT classifies the state of [CLS] (pooling = 'cls')"),
    ):
        if architecture[key] != wanted:
            raise UsageError(f"in the Hub's layout {why}")
    if bool(architecture["classes"]) != classifies:
        raise UsageError("a ViTForImageClassification has classes, a ViTModel none")
    return {
        "image_size": architecture["image_size"],
        "patch_size": architecture["patch_size"],
        "num_channels": architecture["channels"],
        **write_sizes(architecture),
        "qkv_bias": True,
    }


# ---- files beside the weights


def read_beside(folder: Path, config: Config, classifies: bool = True) -> Beside:
    preprocessing = read_preprocessing(folder, config).model_dump(mode="json")
    return Beside(Assets(labels=config.labels() if classifies else (), preprocessing=preprocessing))


def read_preprocessing(folder: Path, config: Config) -> Preprocessing:
    """From preprocessor_config.json; without it as ViT's own processor does by default."""
    file = folder / PROCESSOR
    told: dict[str, Any] = read_json(file) if file.is_file() else {}
    channels, default = config.number("num_channels", 3), _side(config, "image_size", 224)
    factor, resampling = told.get("rescale_factor", 1 / 255), told.get("resample", 2)
    if told.get("do_rescale", True) is not True or not isinstance(factor, float) or abs(factor * 255 - 1) > 1e-6:
        raise ModelError(f"{file}: only pixels divided by 255 are supported (do_rescale, rescale_factor)")
    normalises = told.get("do_normalize", True)
    values: dict[str, Any] = {
        "channels": channels,
        "mean": _each(told.get("image_mean", 0.5) if normalises else 0.0, channels),
        "std": _each(told.get("image_std", 0.5) if normalises else 1.0, channels),
        "resampling": _RESAMPLING.get(resampling) if type(resampling) is int else resampling,
        **_sizes(told, default),
    }
    return Preprocessing.of(values, str(file))


def _each(value: Any, channels: int) -> Any:
    """One number per channel. A processor file of a grey model may have the same one for three colours."""
    if isinstance(value, list) and channels == 1 and value and value == value[:1] * len(value):
        value = value[0]
    return [float(value)] * channels if isinstance(value, (int, float)) else value


def _sizes(told: dict[str, Any], default: int) -> dict[str, Any]:
    """Either the whole picture is stretched to a square, or its middle is cut out after resizing."""
    shorter = _length(told.get("size"), default)
    if told.get("do_center_crop", False):
        size = _length(told.get("crop_size"), default)
        return {"size": size, "fit": "crop", "resize": shorter if shorter != size else None}
    return {"size": shorter, "fit": "stretch"}


def _length(value: Any, default: int) -> Any:
    """224, {"height": 224, "width": 224} or {"shortest_edge": 224}; anything else is refused as it stands."""
    if isinstance(value, dict):
        sides = [value.get("height"), value.get("width")] if "height" in value else [value.get("shortest_edge")] * 2
        return sides[0] if sides[0] == sides[1] else value
    return default if value is None else value


def write_files(architecture: Architecture, beside: Beside) -> dict[str, dict[str, Any]]:
    told = beside.assets.preprocessing
    if not told:
        return {}
    how = Preprocessing.of(told, "preprocessing.json")
    if how.fit == "pad":
        raise UsageError("the Hub's processor does not pad pictures (fit = 'pad'); train with 'crop' or 'stretch'")
    square = {"height": how.size, "width": how.size}
    sizes: dict[str, Any] = {"do_resize": True, "size": square}
    if how.fit == "crop":
        sizes |= {"size": {"shortest_edge": how.resize or how.size}, "do_center_crop": True, "crop_size": square}
    numbers = {name: number for number, name in _RESAMPLING.items()}
    processor = {
        "image_processor_type": "ViTImageProcessor", **sizes, "resample": numbers[how.resampling], "do_rescale": True,
        "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": how.mean, "image_std": how.std,
    }  # fmt: skip
    return {PROCESSOR: processor}


LAYOUTS = (
    Layout(
        family="vit", class_name="ViTForImageClassification", task="classify", read_config=read_config,
        write_config=write_config, keys=keys, read_beside=read_beside, files=write_files,
        sizes=lambda beside: {"classes": len(beside.assets.labels)},
    ),
    Layout(
        family="vit", class_name="ViTModel", task="classify", read_config=read_config,
        write_config=partial(write_config, classifies=False), keys=bare_keys,
        read_beside=partial(read_beside, classifies=False), files=write_files, sizes=lambda beside: {"classes": 0},
        # The pooler was trained for another task; classification reads the state of [CLS] itself.
        ignored=r"pooler\.dense\.(weight|bias)",
    ),
)  # fmt: skip
