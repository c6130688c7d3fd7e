"""A published model that was imported is served like one of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures_published import publish_marian
from running import serving

import headwise
from headwise.workflows.import_model import import_model

pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: pip install -e '.[dev]'")


def test_an_imported_translator_is_served(tmp_path: Path) -> None:
    publish_marian(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    text = "the lazy dog sleeps"
    with serving("--model", f"published={tmp_path / 'ours'}", "--timeout", 600, "--engine", "torch") as server:
        answer = server.ask("POST", "/translate", {"q": text, "source": "en", "target": "fr"})
    assert answer.status == 200
    assert answer.json["translatedText"] == headwise.load(tmp_path / "ours", engine="torch").translate([text])[0].text
