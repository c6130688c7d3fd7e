from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from headwise.errors import UsageError, WorkFailed
from headwise.files import check_name, check_place, file_hash, locked_file, read_bounded, sync, whole_file, write_whole


def test_a_file_is_there_when_it_is_complete_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with whole_file(path) as stream:
        stream.write("half")
        assert not path.exists()
        stream.write(" and half\n")
    assert path.read_bytes() == b"half and half\n"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    write_whole(path, b"old")

    def fail() -> None:
        with whole_file(path) as stream:
            stream.write("new")
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_what_the_disk_refuses_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    problem = r"could not write .*out\.txt: No space left.*free some space"
    with pytest.raises(WorkFailed, match=problem), whole_file(tmp_path / "out.txt"):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_a_place_where_no_file_can_be_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a directory"):
        check_place(tmp_path)
    with pytest.raises(UsageError, match="there is no such folder"):
        check_place(tmp_path / "none" / "out.txt")
    check_place(tmp_path / "out.txt")


def test_a_device_is_written_to_directly() -> None:
    with whole_file("/dev/null") as stream:
        stream.write("gone")
    assert not Path("/dev/null").is_file()


def test_syncing_takes_files_and_folders(tmp_path: Path) -> None:
    write_whole(tmp_path / "x", b"")
    sync(tmp_path / "x")
    sync(tmp_path)


def test_only_ordinary_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    write_whole(tmp_path / "x", b"12345")
    os.mkfifo(tmp_path / "pipe")
    assert read_bounded(tmp_path / "x", 5) == b"12345"
    for place, most in ((tmp_path / "x", 4), (tmp_path / "pipe", 9), (Path("/dev/zero"), 9), (tmp_path, 9)):
        with pytest.raises(OSError, match=r"ordinary file|more than"):
            read_bounded(place, most)


def test_only_what_has_the_size_that_it_says_is_hashed(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"abc")
    assert file_hash(tmp_path / "short", 3) == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(OSError, match="more than the 2 that it may have"):
        file_hash(tmp_path / "short", 2)
    with (tmp_path / "endless").open("wb") as stream:
        stream.truncate(1 << 40)  # reading it would take an hour
    with pytest.raises(OSError, match="more than"):
        file_hash(tmp_path / "endless", 1000)
    with pytest.raises(OSError, match="does not have the size"):
        file_hash("/proc/self/status")  # its size is 0


def test_a_name_that_the_system_cannot_hold_is_a_usage_error(tmp_path: Path) -> None:
    for name in ("x" * 300, "x/" * 3000, "a\0b"):
        with pytest.raises(UsageError, match="the file name"):
            check_name(name)
        with pytest.raises(UsageError, match="the file name"):
            check_place(Path(name))
    check_name(tmp_path / "none")


def test_a_lock_is_held_by_one_and_a_pipe_is_none(tmp_path: Path) -> None:
    with locked_file(tmp_path / "lock"), pytest.raises(BlockingIOError), locked_file(tmp_path / "lock", wait=False):
        pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not an ordinary file"), locked_file(tmp_path / "pipe"):
        pass
