"""The token store: right rows and line numbers, written atomically, reused, safe against crashes and other writers."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headwise.config import schema
from headwise.data import store as store_module
from headwise.data.cached import StoreDamagedError
from headwise.data.chunks import Chunks, Files
from headwise.data.store import Store
from headwise.data.writer import cached_store, write_files
from headwise.errors import DataError, WorkFailed
from headwise.text.tokenizer import Tokenizer

LINES = ["the quick fox", "", "jumps over it", "\x07 bell", "日本語 🙂", "last one"]


def byte_tokenizer() -> Tokenizer:
    return Tokenizer.train(["x"], schema.Tokenizer.model_validate({"kind": "byte"}))


def corpus(folder: Path) -> Chunks:
    (folder / "first.en").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    (folder / "first.de").write_text("".join(f"{line.upper()}\n" for line in LINES), encoding="utf-8")
    (folder / "second.en").write_text("one more\nand more\n", encoding="utf-8")
    (folder / "second.de").write_text("ONE MORE\nAND MORE\n", encoding="utf-8")
    source = [str(folder / "first.en"), str(folder / "second.en")]
    target = [str(folder / "first.de"), str(folder / "second.de")]
    return Chunks(Files(source=source, target=target), schema.Filters())


def write(folder: Path, key: str = "key") -> Store:
    chunks = corpus(folder)
    tokenizers = {"source": byte_tokenizer(), "target": byte_tokenizer()}
    return cached_store(folder / "cache", key, lambda directory: write_files(directory, chunks, tokenizers))


def texts(store: Store, side: str) -> list[str]:
    return byte_tokenizer().decode_batch(store.rows(side, np.arange(len(store))).sentences())


def test_rows_are_the_kept_lines_of_both_sides(tmp_path: Path) -> None:
    store = write(tmp_path)
    kept = [LINES[0], LINES[2], LINES[4], LINES[5], "one more", "and more"]
    assert texts(store, "source") == kept
    assert texts(store, "target") == [line.upper() for line in kept]
    assert store.rows("source", np.array([5, 0])).lengths.tolist() == [8, 13]
    assert store.lengths("source").tolist() == [len(line.encode()) for line in kept]
    store.verify()


def test_lines_read_are_lines_kept_and_dropped_by_reason(tmp_path: Path) -> None:
    counts = write(tmp_path).manifest.counts
    assert (counts.lines, counts.kept, counts.dropped) == (8, 6, {"empty": 1, "control": 1})


def test_a_row_knows_the_file_and_line_it_came_from(tmp_path: Path) -> None:
    store = write(tmp_path)
    numbers = store.line_numbers(np.arange(6))
    assert numbers.tolist() == [1, 3, 5, 6, 7, 8]
    assert store.place(int(numbers[2])) == (str(tmp_path / "first.en"), 5)
    assert store.place(int(numbers[5])) == (str(tmp_path / "second.en"), 2)
    for wrong in (0, 9):
        with pytest.raises(DataError, match=f"no line {wrong}"):
            store.place(wrong)


def test_a_row_of_a_csv_file_knows_its_line_behind_header_blank_lines_and_long_cells(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text('id,source,target\n1,a,b\n\n2,"c, d","e\nf"\n3,g,h\n', encoding="utf-8")
    (tmp_path / "more.csv").write_text("source,target\ni,j\n", encoding="utf-8")
    chunks = Chunks(
        Files(source=[str(table), str(tmp_path / "more.csv")]), schema.Filters.model_validate({"control": False})
    )
    tokenizers = {"source": byte_tokenizer(), "target": byte_tokenizer()}
    store = cached_store(tmp_path / "cache", "key", lambda directory: write_files(directory, chunks, tokenizers))
    assert (texts(store, "source"), texts(store, "target")) == (["a", "c, d", "g", "i"], ["b", "e\nf", "h", "j"])
    places = [store.place(int(number)) for number in store.line_numbers(np.arange(4))]
    assert places == [(str(table), 2), (str(table), 4), (str(table), 6), (str(tmp_path / "more.csv"), 2)]


def test_ids_take_two_bytes_if_the_vocabulary_is_small_enough_and_four_otherwise(tmp_path: Path) -> None:
    class Large(Tokenizer):
        size = 70_000

    assert set(write(tmp_path).manifest.sides.values()) == {"uint16"}
    chunks = corpus(tmp_path)
    large = Large(byte_tokenizer()._inner)
    sides = {"source": large, "target": large}
    wide = cached_store(tmp_path / "cache", "wide", lambda directory: write_files(directory, chunks, sides))
    assert set(wide.manifest.sides.values()) == {"uint32"}
    assert texts(wide, "source")[0] == LINES[0]


def test_an_existing_store_is_reused(tmp_path: Path) -> None:
    write(tmp_path)

    def unwanted(directory: Path) -> None:
        raise AssertionError("written again")

    assert len(cached_store(tmp_path / "cache", "key", unwanted)) == 6


@pytest.mark.parametrize("damage", ["cut", "missing", "manifest", "format"])
def test_a_damaged_store_is_written_again(tmp_path: Path, damage: str) -> None:
    folder = write(tmp_path).directory
    if damage == "cut":
        os.truncate(folder / "source.tokens", 5)
    elif damage == "missing":
        (folder / "lines").unlink()
    elif damage == "manifest":
        (folder / "manifest.json").write_text("{", encoding="utf-8")
    else:
        values = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        (folder / "manifest.json").write_text(json.dumps(values | {"format": 99}), encoding="utf-8")
    with pytest.raises(StoreDamagedError):
        Store(folder)
    assert texts(write(tmp_path), "source")[0] == LINES[0]


def test_verify_finds_a_changed_byte(tmp_path: Path) -> None:
    store = write(tmp_path)
    data = bytearray((store.directory / "target.tokens").read_bytes())
    data[3] ^= 1
    (store.directory / "target.tokens").write_bytes(data)
    with pytest.raises(StoreDamagedError, match="hash"):
        Store(store.directory).verify()


def test_a_process_killed_while_writing_leaves_nothing_mistaken_for_a_store(tmp_path: Path) -> None:
    program = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_store
from headwise.data import store
store.Manifest.write = lambda self, path: os.kill(os.getpid(), 9)
test_store.write(Path({str(tmp_path)!r}))
"""
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert killed.returncode == -9
    assert not (tmp_path / "cache" / "key").exists()
    assert len(os.listdir(tmp_path / "cache")) == 2  # the lock, and what was written so far
    assert len(write(tmp_path)) == 6
    assert sorted(os.listdir(tmp_path / "cache")) == ["key", "key.lock"]


def test_of_two_writers_one_writes_and_the_other_uses_it(tmp_path: Path) -> None:
    chunks, tokenizers = corpus(tmp_path), {"source": byte_tokenizer(), "target": byte_tokenizer()}
    started, calls, stores = threading.Barrier(2), [], []

    def slow_write(directory: Path) -> None:
        calls.append(directory)
        write_files(directory, chunks, tokenizers)

    def run() -> None:
        started.wait()
        stores.append(cached_store(tmp_path / "cache", "key", slow_write))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert [len(store) for store in stores] == [6, 6]


def test_without_locks_the_second_of_two_writers_uses_what_the_first_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(file: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("fcntl.flock", no_locks)
    chunks, tokenizers = corpus(tmp_path), {"source": byte_tokenizer(), "target": byte_tokenizer()}

    def overtaken(directory: Path) -> None:
        write_files(directory, chunks, tokenizers)
        write(tmp_path)  # another process, faster

    assert len(cached_store(tmp_path / "cache", "key", overtaken)) == 6
    assert sorted(os.listdir(tmp_path / "cache")) == ["key", "key.lock"]


@pytest.mark.parametrize("failing", ["write", "fsync", "manifest"])
def test_a_full_disk_is_one_clear_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    name = {"write": "headwise.data.cached.HashedFile.write", "fsync": "os.fsync"}
    monkeypatch.setattr(name.get(failing, "headwise.data.store.Manifest.write"), full)
    with pytest.raises(WorkFailed, match=r"token store .*No space left on device.*free some space") as caught:
        write(tmp_path)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path / "cache") == ["key.lock"]
    monkeypatch.undo()
    assert len(write(tmp_path)) == 6


def test_a_file_size_limit_is_one_clear_line_and_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_store
from headwise.errors import WorkFailed
test_store.LINES *= 100
chunks = test_store.corpus(Path({str(tmp_path)!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
test_store.corpus = lambda folder: chunks
try:
    test_store.write(Path({str(tmp_path)!r}))
except WorkFailed as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "File too large" in ran.stdout, ran.stderr
    assert ran.stdout.count("\n") == 1
    assert os.listdir(tmp_path / "cache") == ["key.lock"]


def test_an_error_in_the_corpus_leaves_nothing(tmp_path: Path) -> None:
    chunks = corpus(tmp_path)
    (tmp_path / "second.de").write_text("only one\n", encoding="utf-8")
    tokenizers = {"source": byte_tokenizer(), "target": byte_tokenizer()}
    with pytest.raises(DataError, match=r"second\.en"):
        cached_store(tmp_path / "cache", "key", lambda directory: write_files(directory, chunks, tokenizers))
    assert os.listdir(tmp_path / "cache") == ["key.lock"]


def test_reading_a_large_store_releases_its_pages(
    pair_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "SMALL", 0)
    monkeypatch.setattr(store_module, "ROWS_BETWEEN_RELEASES", 100)
    store = pair_store(300)
    released = []
    monkeypatch.setattr(store, "release", lambda: released.append(store._rows_touched))
    store.rows("source", np.arange(60))
    assert not released
    store.rows("source", np.arange(60))
    assert released == [120]
    monkeypatch.undo()
    before = store.rows("source", np.arange(300))
    store.release()
    after = store.rows("source", np.arange(300))
    assert np.array_equal(before.tokens, after.tokens)


def test_progress_counts_lines(tmp_path: Path) -> None:
    chunks, seen = corpus(tmp_path), []
    tokenizers = {"source": byte_tokenizer(), "target": byte_tokenizer()}
    cached_store(
        tmp_path / "cache", "key", lambda directory: write_files(directory, chunks, tokenizers, progress=seen.append)
    )
    assert seen == [6, 8]
