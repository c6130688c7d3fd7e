"""Weights are looked at before they are loaded: types, sizes, and numbers that are none."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from headwise.bundle.stored_weights import check_sizes, checked_hash, count_weights, stored_shapes
from headwise.errors import ModelError
from headwise.files import file_hash


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_file({"a": np.ones((3, 5), np.float32), "b": np.zeros(7, np.float32)}, tmp_path / "w")
    return tmp_path / "w"


def test_shapes_come_from_the_header_and_the_hash_from_one_pass(file: Path) -> None:
    shapes = stored_shapes(file, "float32")
    assert shapes == {"a": (3, 5), "b": (7,)}
    assert count_weights(shapes) == 22
    assert checked_hash(file, "float32") == file_hash(file)


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int8, np.int32])
def test_weights_of_another_type_are_refused(file: Path, kind: type) -> None:
    save_file({name: tensor.astype(kind) for name, tensor in load_file(file).items()}, file)
    with pytest.raises(ModelError, match="should be float32"):
        stored_shapes(file, "float32")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_number_that_is_none_is_found_wherever_it_is(file: Path, precision: str, value: float) -> None:
    tensor = np.full(700_000, 65_504.0, precision)
    save_file({"a": tensor}, file)
    checked_hash(file, precision)
    tensor[-1] = value
    save_file({"a": tensor}, file)
    with pytest.raises(ModelError, match="NaN or infinite"):
        checked_hash(file, precision)


def test_more_than_there_is_cannot_be_declared(file: Path) -> None:
    shapes = stored_shapes(file, "float32")
    check_sizes(file, shapes, {"model_dim": 5, "layers": 2, "vocab": 7, "max_length": 1024, "norm": "pre"}, ("vocab",))
    for declared in ({"model_dim": 8}, {"layers": 3}, {"vocab": 10**6}, {"max_length": 10**9}):
        with pytest.raises(ModelError, match="declares"):
            check_sizes(file, shapes, declared, ("vocab",))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="not an ordinary file"):
        stored_shapes(tmp_path / "pipe", "float32")
