from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ctranslate2.specs import common_spec, model_spec

from headwise.errors import ModelError
from headwise.interop.ctranslate2.model_file import open_model_file


class Spec(model_spec.ModelSpec):
    """One linear layer, its alias and two settings, as CTranslate2 writes them."""

    def __init__(self, weight: Any, bias: Any) -> None:
        super().__init__()
        self.layer, self.twin = common_spec.LinearSpec(), common_spec.LinearSpec()
        for layer in (self.layer, self.twin):
            layer.weight, layer.bias = weight, bias
        self.heads = np.dtype("int16").type(8)
        self.flag = True

    @property
    def name(self) -> str:
        return "ToySpec"

    @property
    def revision(self) -> int:
        return 3


def written(folder: Path, quantization: str | None = None, seed: int = 1) -> tuple[Path, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    weight, bias = draw.normal(size=(6, 5)).astype(np.float32), draw.normal(size=6).astype(np.float32)
    spec = Spec(weight.copy(), bias.copy())  # it quantises in place
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    return folder / "model.bin", weight, bias


def test_float32_is_read_exactly_with_aliases_and_settings(tmp_path: Path) -> None:
    file, weight, bias = written(tmp_path, "float32")
    found = open_model_file(file)
    assert (found.specification, found.revision) == ("ToySpec", 3)
    for layer in ("layer", "twin"):
        assert found.shape(f"{layer}/weight") == (6, 5)
        assert np.array_equal(found.floats(f"{layer}/weight"), weight)
        assert np.array_equal(found.floats(f"{layer}/bias"), bias)
    assert (found.number("heads"), found.number("flag"), found.number("other", 4)) == (8, 1, 4)
    assert ("heads" in found, "tails" in found) == (True, False)


@pytest.mark.parametrize(
    ("quantization", "error"), [("float16", 2e-3), ("bfloat16", 2e-2), ("int16", 2e-3), ("int8", 2e-2)]
)
def test_smaller_types_become_float32(tmp_path: Path, quantization: str, error: float) -> None:
    file, weight, bias = written(tmp_path, quantization)
    found = open_model_file(file)
    for layer in ("layer", "twin"):
        values = found.floats(f"{layer}/weight")
        assert values.dtype == np.float32
        assert 0 < np.abs(values - weight).max() < error
        assert np.abs(found.floats(f"{layer}/bias") - bias).max() < error
    if quantization == "bfloat16":
        assert np.array_equal(values, torch.tensor(weight).bfloat16().float().numpy())


def old_file(version: int, items: int = 6, item_size: int = 4) -> bytes:
    """A variable 'w' of 2 x 3 as the first versions of CTranslate2 wrote it, with an alias where there were any."""
    header = struct.pack("<I", version) + (b"\x04\x00abc\x00" + struct.pack("<I", 2) if version >= 2 else b"")
    header += struct.pack("<I", 1) + b"\x02\x00w\x00" + struct.pack("<BII", 2, 2, 3)
    numbers = np.arange(6, dtype={4: "<f4", 2: "<i2", 1: "<i1"}[item_size]).tobytes()
    content = header + struct.pack("<BI", item_size, items) + numbers
    return content + (struct.pack("<I", 1) + b"\x02\x00v\x00\x02\x00w\x00" if version >= 3 else b"")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_old_versions_are_read(tmp_path: Path, version: int) -> None:
    file = tmp_path / "model.bin"
    file.write_bytes(old_file(version))
    found = open_model_file(file)
    assert found.specification == ("abc" if version >= 2 else "")
    assert ("v" in found) == (version >= 3)
    assert found.floats("w").tolist() == [[0, 1, 2], [3, 4, 5]]
    file.write_bytes(old_file(version, item_size=2))
    assert open_model_file(file).stored("w").dtype == np.int16


def test_a_file_cut_anywhere_is_one_clear_line(tmp_path: Path) -> None:
    content = written(tmp_path, "int8")[0].read_bytes()
    file = tmp_path / "cut.bin"
    for size in range(len(content)):
        file.write_bytes(content[:size])
        with pytest.raises(ModelError, match=r"cut\.bin is cut off or damaged: .*; take another copy") as caught:
            open_model_file(file)
        assert "\n" not in str(caught.value)
    file.write_bytes(content + b"\0")
    with pytest.raises(ModelError, match="it is longer than its content"):
        open_model_file(file)


def variable(shape: tuple[int, ...], kind: int = 0, size: int | None = None, name: bytes = b"w\0") -> bytes:
    """A file that declares very many variables and begins with this one."""
    start = struct.pack("<I", 6) + b"\x04\x00abc\x00" + struct.pack("<II", 1, 2**32 - 1)
    header = struct.pack("<H", len(name)) + name[:2] + struct.pack(f"<B{len(shape)}I", len(shape), *shape)
    return start + header + struct.pack("<BI", kind, int(np.prod(shape)) * 4 if size is None else size)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (struct.pack("<I", 7), "newer version than Headwise reads"),
        (b"PK\x03\x04" + bytes(20), r"not a model\.bin of CTranslate2"),
        (b"", "it ends too early"),
        (variable((2**32 - 1,) * 4, size=2**32 - 1), "does not have the size of its shape"),
        (variable((2**20, 2**8)), "w is cut off"),
        (variable((1,), kind=9), "unknown type 9"),
        (variable((1,) * 200), "w has 200 axes"),
        (variable((1,), size=5) + bytes(5), "does not have the size of its shape"),
        (variable((1,)) + bytes(4) + b"\x02\x00w\x00" + variable((1,))[-9:] + bytes(4), "w occurs in it twice"),
        (variable((1,), name=b"\xff\0") + bytes(4), "a name is not UTF-8"),
        (variable((1,), name=b""), "a name has 0 bytes"),
        (variable((1,), name=bytes(2**16 - 1)), "a name has 65535 bytes"),
    ],
)
def test_what_a_header_declares_is_checked_before_anything_is_read(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "model.bin"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=words) as caught:
        open_model_file(file)
    assert "\n" not in str(caught.value)


def test_an_alias_of_nothing_a_missing_tensor_and_unknown_quantisation_are_named(tmp_path: Path) -> None:
    file = tmp_path / "model.bin"
    file.write_bytes(old_file(3).replace(b"v\x00\x02\x00w", b"v\x00\x02\x00x"))
    with pytest.raises(ModelError, match="v stands for x, which is not there"):
        open_model_file(file)
    file.write_bytes(old_file(3, item_size=1))
    found = open_model_file(file)
    with pytest.raises(ModelError, match="lacks other"):
        found.stored("other")
    with pytest.raises(ModelError, match="w is quantised in a way that Headwise does not read"):
        found.floats("w")
    with pytest.raises(ModelError, match="w is not one number"):
        found.number("w")
    with pytest.raises(ModelError, match="is not there; give a directory of CTranslate2"):
        open_model_file(tmp_path / "none.bin")
