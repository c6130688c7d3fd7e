from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwise.workflows import demo as workflow
from headwise.workflows.demo import Demo, demo

SMALL = [
    "model.model_dim=16", "model.num_heads=2", "model.ff_dim=16", "model.encoder_layers=1", "model.decoder_layers=1",
    "tokenizer.size=500", "training.steps=4", "training.batch_tokens=300", "training.validation_sentences=2",
]  # fmt: skip


def test_the_whole_way_leaves_a_model_scores_sentences_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow, "TRAINING_PAIRS", 300)
    monkeypatch.setattr(workflow, "HELD_OUT_PAIRS", 10)
    told: list[str] = []
    made = demo(tmp_path / "demo", overrides=SMALL, tell=told.append)
    assert isinstance(made, Demo)
    assert {score.name for score in made.scores} == {"BLEU", "chrF2"}
    assert len(made.shown) == workflow.SHOWN
    assert all(path.stat().st_size > 1000 for path in made.pictures)
    assert json.loads((made.finished.model / "config.json").read_text())["languages"] == ["en", "zh"]
    again = demo(tmp_path / "demo", overrides=SMALL, tell=told.append)
    assert isinstance(again, Demo)
    assert [shown.translation for shown in again.shown] == [shown.translation for shown in made.shown]
    assert any("is already trained" in line for line in told)
