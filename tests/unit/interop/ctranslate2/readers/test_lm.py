from __future__ import annotations

from pathlib import Path

import pytest

from headwise.bundle.weights import declared_shapes
from headwise.config.families.lm import LanguageModelSettings
from headwise.errors import ModelError
from headwise.interop.ctranslate2.read import read_model
from headwise.interop.ctranslate2.readers.lm import keys


def test_the_table_names_every_weight_in_every_arrangement() -> None:
    small = {"model_dim": 8, "num_heads": 2, "layers": 2, "ff_dim": 8}
    for changes in ({}, {"norm": "pre"}, {"tie": "none"}, {"positions": "learned"}):
        settings = LanguageModelSettings.of({**small, **changes}).model_dump(mode="json")
        declared = declared_shapes(Path("model"), "lm", {"vocab": 9, **settings})
        assert {key.ours for key in keys(settings)} == declared.keys()


def test_a_language_model_of_somebody_else_is_refused_with_a_remedy(tmp_path: Path) -> None:
    name = b"TransformerDecoderSpec\0"
    header = b"\x06\0\0\0" + len(name).to_bytes(2, "little") + name
    (tmp_path / "model.bin").write_bytes(header + b"\x08\0\0\0" + bytes(8))
    with pytest.raises(ModelError, match="imports its own exports only; import the model that this one was converted"):
        read_model(tmp_path)
