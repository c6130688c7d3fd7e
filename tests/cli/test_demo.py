"""`headwise demo`."""

from __future__ import annotations

from pathlib import Path

import pytest
from verbs import run

from headwise.workflows import demo as workflow
from headwise.workflows.task_demo import Messages

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


def test_the_demo_of_another_task_shows_its_scores_and_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Messages, "train", 60)
    monkeypatch.setattr(Messages, "held_out", 12)
    monkeypatch.chdir(tmp_path)
    small = ["model.model_dim=16", "model.ff_dim=16", "model.layers=1", "tokenizer.size=300", "training.steps=2"]
    done = run("demo", "--task", "classify", *(word for one in small for word in ("--set", one)))
    assert done.code == 0
    model = Path("headwise-demo-classify/run/model")
    assert model.is_dir()
    assert "  accuracy" in done.out
    assert f"  model     {model}\n" in done.out
    assert f'  headwise classify --model {model} "' in done.out
    refused = run("demo", "--task", "embed")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
