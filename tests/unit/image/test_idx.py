from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import DataError
from headwise.image import idx
from headwise.image.idx import is_idx, labels_beside, open_idx


def idx_bytes(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


VALUES = np.arange(7 * 4 * 3, dtype=np.uint8).reshape(7, 4, 3)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("block", [1, 30, 10_000])
def test_rows_come_in_blocks_whether_compressed_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: object, block: int
) -> None:
    monkeypatch.setattr(idx, "_BLOCK", block)
    file = tmp_path / "train-images-idx3-ubyte"
    file.write_bytes(compress(idx_bytes(VALUES)))  # type: ignore[operator]
    opened = open_idx(file)
    assert opened.shape == (7, 4, 3)
    blocks = list(opened.blocks())
    assert np.array_equal(np.concatenate(blocks), VALUES)
    assert max(len(rows) for rows in blocks) == max(1, min(7, block // 12))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ends before its header says"),
        (b"\x89PNG\r\n\x1a\n", "is not an idx file"),
        (b"\0\0\x0d\x02" + b"\0" * 8, "is not an idx file of unsigned bytes"),
        (idx_bytes(VALUES)[:6], "ends before its header says"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 5, 0, 3), "cannot be pictures or labels"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 1, 2**31, 2**31), "cannot be pictures or labels"),
        (gzip.compress(idx_bytes(VALUES), mtime=0)[:10], "cannot be read"),
    ],
)
def test_a_damaged_header_is_one_clear_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "broken-idx3-ubyte"
    file.write_bytes(content)
    with pytest.raises(DataError, match=message) as found:
        open_idx(file)
    assert str(file) in str(found.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx_bytes(VALUES)[:-1], "ends before"),
        (idx_bytes(VALUES) + b"x", "has more data than its header says: 7 × 4 × 3"),
        (gzip.compress(idx_bytes(VALUES), mtime=0)[:-12], "cannot be read|ends before"),
    ],
)
def test_a_file_that_is_not_as_long_as_it_says_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "broken-idx3-ubyte"
    file.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(open_idx(file).blocks())


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        open_idx(tmp_path / "none")


def test_labels_are_found_beside_the_pictures(tmp_path: Path) -> None:
    images = tmp_path / "t10k-images-idx3-ubyte.gz"
    with pytest.raises(DataError, match=r"there is no t10k-labels-idx1-ubyte.gz beside it"):
        labels_beside(images)
    for name in ("t10k-labels-idx1-ubyte", "t10k-labels-idx1-ubyte.gz"):  # unpacked, then packed
        (tmp_path / name).touch()
        assert labels_beside(images).name == name


def test_idx_files_are_known_by_their_names() -> None:
    names = ("train-images-idx3-ubyte", "train-images-idx3-ubyte.gz", "a.idx", "x-ubyte.gz", "a.png", "a.csv")
    assert [is_idx(name) for name in names] == [True, True, True, True, False, False]
