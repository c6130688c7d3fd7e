from __future__ import annotations

from pathlib import Path

import pytest

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.interop.ctranslate2.export import is_current
from headwise.workflows.export import export_model


def test_an_export_may_be_made_anew_but_nothing_else_is_replaced(word_model: Path, tmp_path: Path) -> None:
    for _ in range(2):
        export_model(word_model, tmp_path / "out", precision="float32")
    assert is_current(open_bundle(word_model), tmp_path / "out", "float32")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    with pytest.raises(UsageError, match="exists already and is not an export"):
        export_model(word_model, tmp_path / "mine")
    with pytest.raises(UsageError, match="cannot export to 'onnx'; there is ctranslate2, huggingface"):
        export_model(word_model, tmp_path / "other", to="onnx")
