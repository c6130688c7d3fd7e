"""`headwise demo`."""

from __future__ import annotations

from pathlib import Path

import pytest
from verbs import run

from headwise.workflows import demo as workflow

SMALL = [
    "model.model_dim=16", "model.num_heads=2", "model.ff_dim=16", "model.encoder_layers=1", "model.decoder_layers=1",
    "tokenizer.size=500", "training.steps=2", "training.batch_tokens=300", "training.validation_sentences=2",
]  # fmt: skip


def test_it_says_how_good_the_model_is_where_everything_is_and_what_to_try_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow, "TRAINING_PAIRS", 300)
    monkeypatch.setattr(workflow, "HELD_OUT_PAIRS", 10)
    done = run("demo", "--output", tmp_path / "demo", *(word for one in SMALL for word in ("--set", one)))
    assert done.code == 0
    assert "  BLEU" in done.out
    for path in ("corpus", "run/model", "attention.html", "attention.svg"):
        assert str(tmp_path / "demo" / path) in done.out
        assert (tmp_path / "demo" / path).exists()
    assert f"headwise translate --model {tmp_path / 'demo/run/model'}" in done.out
