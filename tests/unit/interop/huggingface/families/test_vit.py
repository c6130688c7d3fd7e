from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwise.bundle.assets import Assets
from headwise.config.families.vit import FAMILY
from headwise.errors import ModelError, UsageError
from headwise.image.preprocessing import Preprocessing
from headwise.interop.huggingface.families.vit import (
    read_config,
    read_preprocessing,
    write_config,
    write_files,
)
from headwise.interop.huggingface.layout import Beside
from headwise.interop.huggingface.published import Config

BASE = {"model_type": "vit", "image_size": 224, "patch_size": 16}


def config(folder: Path, **values: Any) -> Config:
    return Config(folder / "config.json", {**BASE, **values})


def test_settings_go_there_and_back(tmp_path: Path) -> None:
    read = read_config(config(tmp_path, hidden_size=64, num_attention_heads=2, image_size=[32, 32], num_channels=1))
    assert (read["image_size"], read["channels"], read["model_dim"], read["norm_epsilon"]) == (32, 1, 64, 1e-12)
    settings = FAMILY.settings.model_validate({key: value for key, value in read.items() if key != "channels"})
    written = write_config({**settings.model_dump(), "channels": 1, "classes": 3})
    assert read_config(config(tmp_path, **written)) == read


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"image_size": [224, 112]}, r"config.json: image_size = \[224, 112\] is not supported"),
        ({"patch_size": "16"}, "patch_size = '16' is not supported"),
        ({"qkv_bias": False}, "qkv_bias = False is not supported"),
        ({"layer_norm_eps": 2.0}, "layer_norm_eps must be a small positive number"),
        ({"hidden_act": "mish"}, "hidden_act = 'mish' is not supported"),
    ],
)
def test_what_is_not_supported_is_said_before_anything_is_read(
    tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        read_config(config(tmp_path, **values))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stem": "convolutions"}, "patches, not a convolutional stem"),
        ({"positions": "sinusoidal"}, "learned positions"),
        ({"pooling": "mean"}, "classifies the state of"),
        ({"classes": 0}, "has classes"),
    ],
)
def test_what_the_hub_cannot_express_is_not_exported(changes: dict[str, Any], message: str) -> None:
    settings = {**FAMILY.settings().model_dump(), "channels": 3, "classes": 2}
    with pytest.raises(UsageError, match=message):
        write_config({**settings, **changes})


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (None, {"size": 224, "fit": "stretch", "resampling": "bilinear", "mean": [0.5] * 3, "std": [0.5] * 3}),
        ({"size": 384, "resample": 3}, {"size": 384, "fit": "stretch", "resampling": "bicubic"}),
        ({"size": {"height": 96, "width": 96}}, {"size": 96, "fit": "stretch"}),
        (
            {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": {"height": 224, "width": 224}},
            {"size": 224, "fit": "crop", "resize": 256},
        ),
        ({"size": 224, "do_center_crop": True, "crop_size": 224}, {"size": 224, "fit": "crop", "resize": None}),
        ({"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4] * 3}, {"mean": [0.1, 0.2, 0.3], "std": [0.4] * 3}),
        ({"do_normalize": False}, {"mean": [0.0] * 3, "std": [1.0] * 3}),
    ],
)
def test_the_processor_file_says_how_pictures_are_read(
    tmp_path: Path, told: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    if told is not None:
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(told))
    found = read_preprocessing(tmp_path, config(tmp_path))
    values = found.model_dump()
    assert {name: values[name] for name in expected} == expected
    # What is written says the same.
    written = write_files({}, Beside(Assets(preprocessing=values)))["preprocessor_config.json"]
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(written))
    assert read_preprocessing(tmp_path, config(tmp_path)) == found


@pytest.mark.parametrize(
    "told",
    [
        {"do_rescale": False}, {"rescale_factor": 1.0}, {"rescale_factor": "x"}, {"size": {"height": 9, "width": 8}},
        {"size": "big"}, {"resample": 17}, {"resample": [2]}, {"image_mean": [0.5]}, {"image_std": [0.0] * 3},
        {"size": {"longest_edge": 224}},
    ],
)  # fmt: skip
def test_a_processor_that_cannot_be_followed_is_refused(tmp_path: Path, told: dict[str, Any]) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(told))
    with pytest.raises(ModelError, match=r"preprocessor_config.json"):
        read_preprocessing(tmp_path, config(tmp_path))


def test_padding_cannot_be_exported() -> None:
    how = Preprocessing(size=8, mean=[0.5] * 3, std=[0.5] * 3, fit="pad").model_dump()
    with pytest.raises(UsageError, match="does not pad"):
        write_files({}, Beside(Assets(preprocessing=how)))
