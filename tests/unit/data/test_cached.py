from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from headwise.data.cached import HashedFile, StoreDamagedError, cached
from headwise.errors import WorkFailed


def opened(directory: Path) -> str:
    try:
        return (directory / "content").read_text()
    except OSError as error:
        raise StoreDamagedError(str(error)) from error


def write(directory: Path) -> None:
    (directory / "content").write_text("kept")


def test_a_store_is_written_once_and_then_opened(tmp_path: Path) -> None:
    assert cached(tmp_path, "key", write, opened) == "kept"

    def again(directory: Path) -> None:
        raise AssertionError("it is there already")

    assert cached(tmp_path, "key", again, opened) == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "key.lock"]


def test_a_damaged_store_and_leftovers_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()
    (tmp_path / ".key.1234").mkdir()
    assert cached(tmp_path, "key", write, opened) == "kept"
    assert not (tmp_path / ".key.1234").exists()


def test_nothing_stays_of_a_store_whose_writing_fails(tmp_path: Path) -> None:
    def fails(directory: Path) -> None:
        write(directory)
        raise OSError(28, "No space left on device")

    with pytest.raises(WorkFailed, match=r"cannot write the pixel store .*No space left on device.*free some space"):
        cached(tmp_path, "key", fails, opened, "pixel store")
    assert [path.name for path in tmp_path.iterdir()] == ["key.lock"]


def test_a_file_knows_its_size_and_hash(tmp_path: Path) -> None:
    with HashedFile(tmp_path / "numbers") as file:
        for part in (np.arange(5, dtype=np.int16), np.zeros(0, dtype=np.int16), np.ones((2, 2), dtype=np.int16)):
            file.write(part)
        file.finish()
    content = (tmp_path / "numbers").read_bytes()
    assert (file.size, file.hash) == (len(content), hashlib.sha256(content).hexdigest())
    assert np.frombuffer(content, np.int16).tolist() == [0, 1, 2, 3, 4, 1, 1, 1, 1]
