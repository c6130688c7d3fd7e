from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from headwise.bundle import checkpoint
from headwise.bundle.checkpoint import (
    MANIFEST,
    TENSORS,
    checkpoint_path,
    list_checkpoints,
    newest_good,
    open_checkpoint,
    remove_leftovers,
    save_checkpoint,
)
from headwise.errors import HeadwiseError, ModelError, WorkFailed
from headwise.files import file_hash


def save(folder: Path, step: int, **state: Any) -> Path:
    def model(directory: Path) -> None:
        directory.mkdir()
        (directory / "config.json").write_text("{}")

    return save_checkpoint(folder, step, model, {"optimizer:x": torch.full((3,), float(step))}, {"step": step, **state})


def test_state_and_tensors_come_back(tmp_path: Path) -> None:
    path = save(tmp_path, 12, nested={"loss": [1.5, None]})
    assert path == checkpoint_path(tmp_path, 12)
    found = open_checkpoint(path)
    assert found.state == {"step": 12, "nested": {"loss": [1.5, None]}}
    assert torch.equal(dict(found.each_tensor())["optimizer:x"], torch.full((3,), 12.0))
    assert found.model == path / "model"


def test_they_are_listed_by_number_and_what_is_none_is_passed_over(tmp_path: Path) -> None:
    assert list_checkpoints(tmp_path / "none") == []
    for step in (100_000_000, 5, 20):
        save(tmp_path, step)
    for name in (".step-00000030.new-1", "step-x", "notes", "step-12"):
        (tmp_path / name).mkdir()
    assert [step for step, _ in list_checkpoints(tmp_path)] == [5, 20, 100_000_000]


@pytest.mark.parametrize("name", ["training.json", "training.safetensors", "model/config.json"])
def test_a_changed_byte_or_a_missing_file_is_found_and_named(tmp_path: Path, name: str) -> None:
    path = save(tmp_path, 1)
    (path / name).write_bytes((path / name).read_bytes() + b" ")
    with pytest.raises(ModelError, match=f"{name} does not have the hash"):
        open_checkpoint(path)
    (path / name).unlink()
    with pytest.raises(ModelError, match=f"{name} is missing"):
        open_checkpoint(path)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"files": 3}', '{"files": {}}'])
def test_a_manifest_that_lists_nothing_does_not_vouch_for_anything(tmp_path: Path, content: str) -> None:
    path = save(tmp_path, 1)
    (path / MANIFEST).write_text(content)
    with pytest.raises(ModelError):
        open_checkpoint(path)


def test_a_manifest_cannot_name_files_outside(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    manifest = json.loads((path / MANIFEST).read_text())
    manifest["files"]["../../outside"] = "0"
    (path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match="outside itself"):
        open_checkpoint(path)


def test_the_newest_good_one_is_found_and_the_damaged_ones_are_told(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save(tmp_path, step)
    (tmp_path / "step-00000003" / MANIFEST).unlink()
    (tmp_path / "step-00000002/training.json").write_text("{}")
    told: list[HeadwiseError] = []
    found = newest_good(tmp_path, told.append)
    assert found is not None
    assert found.state["step"] == 1
    assert [("step-00000003" in str(e), "step-00000002" in str(e)) for e in told] == [(True, False), (False, True)]
    (tmp_path / "step-00000001/training.json").unlink()
    assert newest_good(tmp_path, told.append) is None


def test_one_whose_files_cannot_be_read_is_passed_over_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = (save(tmp_path, step) for step in (1, 2))

    def unreadable(file: Path) -> str:
        if file == bad / TENSORS:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return file_hash(file)

    monkeypatch.setattr(checkpoint, "file_hash", unreadable)
    told: list[HeadwiseError] = []
    found = newest_good(tmp_path, told.append)
    assert found is not None
    assert found.path == good
    assert "cannot be read" in str(told[0])


def test_a_save_that_fails_leaves_nothing_and_keeps_the_others(tmp_path: Path) -> None:
    save(tmp_path, 1)

    def full(directory: Path) -> None:
        directory.mkdir()
        (directory / "part").write_text("x")
        raise OSError(28, "No space left on device")

    with pytest.raises(WorkFailed, match=r"step-00000002: No space left on device"):
        save_checkpoint(tmp_path, 2, full, {}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


def test_what_a_killed_save_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    save(tmp_path, 1)
    for name in (".step-00000002.new-77", ".step-00000001.old-77", ".hidden", "step-00000009.new-1"):
        (tmp_path / name).mkdir()
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"step-00000001", ".hidden", "step-00000009.new-1"}
    remove_leftovers(tmp_path / "none")
