from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import ModelError
from headwise.interop.marian.arrays import open_arrays


def test_arrays_are_read_one_at_a_time(tmp_path: Path) -> None:
    one = np.arange(6, dtype=np.float32).reshape(2, 3)
    text = np.frombuffer("grüß: 1\0".encode(), dtype=np.int8)
    np.savez(tmp_path / "m.npz", one=one, columns=np.asfortranarray(one), half=one.astype(np.float16), text=text)
    found = open_arrays(tmp_path / "m.npz")
    for name in ("one", "columns", "half"):
        assert np.array_equal(found.read(name), one)
        assert found.read(name).dtype == np.float32
    assert found.text("text") == "grüß: 1"
    with pytest.raises(ModelError, match="lacks other; it is not a model of Marian"):
        found.text("other")


def test_a_pickle_inside_is_never_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", bad=np.array([{"code": 1}], dtype=object))
    with pytest.raises(ModelError, match="is of type object, which Headwise does not read"):
        open_arrays(tmp_path / "m.npz")


def test_a_header_that_declares_more_than_there_is_is_refused_before_it_is_allocated(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**6)})
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("w.npy", header.getvalue() + bytes(8))
    with pytest.raises(ModelError, match="does not have the size of its shape"):
        open_arrays(tmp_path / "m.npz")


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", a=np.ones(1000, dtype=np.float32))
    content = (tmp_path / "m.npz").read_bytes()
    for broken in (b"", b"PK", content[:2000], content[: len(content) - 30], b"x" * 100):
        (tmp_path / "m.npz").write_bytes(broken)
        with pytest.raises(ModelError, match="is cut off or damaged") as caught:
            open_arrays(tmp_path / "m.npz")
        assert "\n" not in str(caught.value)
    flipped = bytearray(content)
    flipped[500] ^= 0xFF
    (tmp_path / "m.npz").write_bytes(bytes(flipped))
    with pytest.raises(ModelError, match="is cut off or damaged"):
        open_arrays(tmp_path / "m.npz").read("a")
