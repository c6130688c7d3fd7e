from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from headwise.errors import HeadwiseError
from headwise.interop.sources import read_model


def test_a_file_is_told_apart_and_the_remedy_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "translate-en_de.argosmodel", "w") as archive:
        archive.writestr("metadata.json", "{}")
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("data.pkl", "x")
    for name, words in (
        ("translate-en_de.argosmodel", "is an archive; unpack it and give the folder: unzip translate"),
        ("model.safetensors", "is a file; give the folder that it is in"),
        ("model.pt", "is a pickle, which can run code, so it is not opened"),
    ):
        with pytest.raises(HeadwiseError, match=words):
            read_model(tmp_path / name)
