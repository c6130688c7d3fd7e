from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwise.errors import ModelError
from headwise.interop.huggingface.sentences import (
    LENGTH,
    MODULES,
    POOLING,
    read_longest,
    read_pooling,
    sentence_files,
)

STEP = "sentence_transformers.models"


def write(folder: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_files_say_what_was_read_from_them(tmp_path: Path, pooling: str) -> None:
    files = sentence_files({"model_dim": 32, "pooling": pooling}, 40)
    assert [part["type"].rpartition(".")[2] for part in files[MODULES]] == ["Transformer", "Pooling", "Normalize"]
    write(tmp_path, files)
    assert (read_pooling(tmp_path), read_longest(tmp_path)) == (pooling, 40)


def test_without_files_it_is_the_mean_of_whole_texts(tmp_path: Path) -> None:
    assert (read_pooling(tmp_path), read_longest(tmp_path)) == ("mean", None)
    write(tmp_path, {LENGTH: {"max_seq_length": None}})
    assert read_longest(tmp_path) is None


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"type": f"{STEP}.Transformer", "path": ""}, {"type": f"{STEP}.Dense", "path": "2_Dense"}], "step Dense"),
        ([{"type": f"{STEP}.Pooling", "path": "../other"}], "must be in the folder 1_Pooling"),
        ([{}], "step None"),
        (["Pooling"], "a list of steps"),
        ({"a": 1}, "a list of steps"),
    ],
)
def test_steps_that_compute_something_else_are_refused(tmp_path: Path, steps: object, message: str) -> None:
    write(tmp_path, {MODULES: steps})
    with pytest.raises(ModelError, match=message):
        read_pooling(tmp_path)


def test_a_damaged_file_is_one_clear_line(tmp_path: Path) -> None:
    for content in (b"[", b"\xff\xfe\xff", b"[" * 100_000):
        (tmp_path / MODULES).write_bytes(content)
        with pytest.raises(ModelError, match=r"modules\.json cannot be read"):
            read_pooling(tmp_path)


@pytest.mark.parametrize("modes", [{}, {"pooling_mode_max_tokens": True}, {"pooling_mode_cls_token": 1}])
def test_another_pooling_is_refused(tmp_path: Path, modes: dict[str, Any]) -> None:
    write(tmp_path, {POOLING: modes})
    with pytest.raises(ModelError, match="only the mean of all tokens or the first one"):
        read_pooling(tmp_path)


def test_a_length_that_is_no_number_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {LENGTH: {"max_seq_length": "256"}})
    with pytest.raises(ModelError, match="max_seq_length must be a whole number"):
        read_longest(tmp_path)
