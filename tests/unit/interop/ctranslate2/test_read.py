from __future__ import annotations

from pathlib import Path

import pytest

from headwise.errors import ModelError
from headwise.interop.ctranslate2.read import read_model, readers


def test_a_specification_that_is_not_known_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"\x06\0\0\0" + b"\x08\0ToySpec\0" + b"\x01\0\0\0" + b"\0\0\0\0" + b"\0\0\0\0")
    with pytest.raises(ModelError, match=r"CTranslate2's 'ToySpec' is unknown; Headwise imports .*TransformerSpec"):
        read_model(tmp_path)


def test_each_specification_has_one_reader() -> None:
    assert {"TransformerSpec", "TransformerDecoderSpec"} <= readers().keys()
