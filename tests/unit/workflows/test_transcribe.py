"""Opening a model that transcribes."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures_published import publish_gpt2
from fixtures_whisper import publish_whisper

from headwise.errors import ModelError
from headwise.workflows.import_model import import_model
from headwise.workflows.transcribe import open_transcriber


def test_a_speech_model_is_opened_and_another_one_is_named(tmp_path: Path) -> None:
    publish_whisper(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "speech")
    assert open_transcriber(tmp_path / "speech").window == 100
    publish_gpt2(tmp_path / "gpt2")
    import_model(tmp_path / "gpt2", tmp_path / "language")
    with pytest.raises(ModelError, match="task 'generate', which does not transcribe"):
        open_transcriber(tmp_path / "language")
