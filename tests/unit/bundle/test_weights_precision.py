"""Weights stored as float16: half the file, and a model that computes in float32 like any other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fixtures_models import small_transformer, word_tokenizers

from headwise.bundle.averaging import average_weights
from headwise.bundle.directory import open_bundle, write_config
from headwise.bundle.weights import load_model, named_weights, save_model
from headwise.errors import HeadwiseError, ModelError


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    torch.manual_seed(3)
    tokenizers = word_tokenizers()
    model = small_transformer(tokenizers.source.size)
    for precision in ("float32", "float16"):
        save_model(tmp_path / precision, model, tokenizers, family="transformer", precision=precision)
    return tmp_path


def test_float16_is_half_the_file_and_loads_as_float32_within_its_rounding(stored: Path) -> None:
    sizes = [(stored / name / "model.safetensors").stat().st_size for name in ("float32", "float16")]
    assert sizes[1] < 0.55 * sizes[0]
    assert json.loads((stored / "float16/config.json").read_text())["precision"] == "float16"
    full, half = (named_weights(load_model(open_bundle(stored / name))) for name in ("float32", "float16"))
    for name, tensor in half.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, full[name].half().float())
    assert any(not torch.equal(tensor, full[name]) for name, tensor in half.items())


def test_a_directory_without_the_field_is_float32(stored: Path) -> None:
    config = json.loads((stored / "float32/config.json").read_text())
    del config["precision"], config["sha256"]
    (stored / "float32/config.json").write_text(json.dumps(config))
    assert open_bundle(stored / "float32").precision == "float32"
    load_model(open_bundle(stored / "float32"))


def test_a_declared_precision_that_the_file_does_not_have_is_an_error(stored: Path) -> None:
    write_config(stored / "float16", replace(open_bundle(stored / "float16"), precision="float32"))
    with pytest.raises(ModelError, match=r"should be float32, is F16"):
        load_model(open_bundle(stored / "float16"))
    config = json.loads((stored / "float32/config.json").read_text()) | {"precision": "int3"}
    (stored / "float32/config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"precision must be one of float32, float16, not 'int3'"):
        open_bundle(stored / "float32")


def test_weights_that_float16_cannot_hold_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    model = small_transformer(tokenizers.source.size)
    with torch.no_grad():
        next(iter(model.parameters()))[0, 0] = 70_000.0
    with pytest.raises(HeadwiseError, match="float16 cannot hold"):
        save_model(tmp_path / "model", model, tokenizers, family="transformer", precision="float16")
    assert list(tmp_path.iterdir()) == []


def test_float16_models_are_averaged_in_full_precision(stored: Path) -> None:
    bundle, weights = average_weights([stored / "float16", stored / "float16"])
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    half = named_weights(load_model(bundle))
    assert all(torch.equal(weights[name], half[name]) for name in half)
