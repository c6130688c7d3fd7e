from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from headwise.bundle.directory import CARD, CONFIG, FORMAT_VERSION, WEIGHTS, copy_files, open_bundle, write_directory
from headwise.errors import ModelError, WorkFailed


def change(directory: Path, **values: Any) -> None:
    config = json.loads((directory / CONFIG).read_text())
    (directory / CONFIG).write_text(json.dumps({**config, **values}))


def problem(directory: Path) -> str:
    with pytest.raises(ModelError) as error:
        open_bundle(directory)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_was_written_is_read(directory: Path) -> None:
    bundle = open_bundle(directory)
    assert (bundle.family, bundle.languages, bundle.card) == ("transformer", ("en", "de"), {"validation": {"bleu": 1}})
    assert bundle.architecture["model_dim"] == 16
    assert set(bundle.files) == {CARD, WEIGHTS, "tokenizer.json"}


def test_files_are_as_readable_as_the_folder(directory: Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
    assert set(modes.values()) == {directory.stat().st_mode & 0o666}


def test_a_missing_model_is_named_with_a_remedy(tmp_path: Path) -> None:
    assert f"{tmp_path / 'none'} is not there" in problem(tmp_path / "none")
    assert f"{tmp_path} has no config.json; give a model directory" in problem(tmp_path)


@pytest.mark.parametrize("name", [CARD, WEIGHTS, "tokenizer.json"])
def test_a_changed_or_missing_file_is_named(directory: Path, name: str) -> None:
    content = bytearray((directory / name).read_bytes())
    content[-1] ^= 1
    (directory / name).write_bytes(content)
    assert name in problem(directory)
    (directory / name).unlink()
    assert f"{name} is missing" in problem(directory)


def test_a_newer_format_asks_for_an_upgrade(directory: Path) -> None:
    change(directory, format=FORMAT_VERSION + 1)
    assert problem(directory).endswith(f"this version reads up to {FORMAT_VERSION}; upgrade headwise")


@pytest.mark.parametrize(
    "content", ["", "[]", "null", "{", '{"a": 1}', '{"format": "1"}', '{"format": 1}', "[" * 100_000, "\x00"]
)
def test_a_config_that_is_none_is_refused(directory: Path, content: str) -> None:
    (directory / CONFIG).write_text(content)
    assert str(directory) in problem(directory)


@pytest.mark.parametrize(
    "values", [{"files": []}, {"architecture": 3}, {"languages": None}, {"files": None}, {"decoding": "beam"}]
)
def test_a_config_with_values_of_another_kind_is_refused(directory: Path, values: dict[str, Any]) -> None:
    change(directory, **values)
    assert "is damaged" in problem(directory)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "sub/file", "..", "."])
def test_a_model_cannot_name_files_outside_of_itself(directory: Path, name: str) -> None:
    (directory.parent / "outside").write_text("x")
    change(directory, files={name: "0" * 64})
    assert "outside itself" in problem(directory) or "is missing" in problem(directory)


# ---- whole or not at all


def test_a_directory_replaces_the_old_one_whole(tmp_path: Path) -> None:
    final = tmp_path / "deep/final"
    write_directory(final, lambda new: (new / "old").touch())
    write_directory(final, lambda new: (new / "new").touch())
    assert [path.name for path in final.iterdir()] == ["new"]
    assert [path.name for path in final.parent.iterdir()] == ["final"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("a bug")])
def test_after_an_error_the_old_directory_is_as_it_was(tmp_path: Path, error: Exception) -> None:
    final = tmp_path / "final"
    write_directory(final, lambda new: (new / "old").touch())

    def fail(new: Path) -> None:
        (new / "part").touch()
        raise error

    with pytest.raises(WorkFailed if isinstance(error, OSError) else RuntimeError):
        write_directory(final, fail)
    assert [path.name for path in final.iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


def test_when_the_new_one_cannot_take_its_place_the_old_one_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    final = tmp_path / "final"
    write_directory(final, lambda new: (new / "old").touch())
    rename = os.rename

    def refuse(source: Path, target: Path) -> None:
        if ".new-" in source.name:
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr("headwise.bundle.directory.os.rename", refuse)
    with pytest.raises(WorkFailed, match=r"could not write .*final: Input/output error; free some space"):
        write_directory(final, lambda new: (new / "new").touch())
    assert [path.name for path in final.iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


def test_every_file_is_on_the_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.rename
    monkeypatch.setattr(
        "headwise.bundle.directory.os.fsync", lambda h: (done.append(os.readlink(f"/proc/self/fd/{h}")), sync(h))
    )
    monkeypatch.setattr("headwise.bundle.directory.os.rename", lambda a, b: (done.append("rename"), rename(a, b)))

    def fill(new: Path) -> None:
        (new / "sub").mkdir()
        (new / "sub/file").touch()

    write_directory(tmp_path / "final", fill)
    names = [Path(place).name for place in done]
    assert names[0] == "file"
    assert names[1] == "sub"
    assert names.index("rename") == 3
    assert names[-1] == tmp_path.name


def test_only_the_models_own_files_are_copied(directory: Path, tmp_path: Path) -> None:
    (directory / "ctranslate2").mkdir()
    (directory / "notes").touch()
    copy = tmp_path / "copy"
    copy.mkdir()
    copy_files(directory, copy)
    assert {path.name for path in copy.iterdir()} == {CARD, CONFIG, WEIGHTS, "tokenizer.json"}
    assert open_bundle(copy).files == open_bundle(directory).files
