"""The demos of the other tasks go the whole way: data, model, scores, answers, commands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from verbs import run

from headwise.errors import UsageError
from headwise.workflows.task_demo import LESSONS, TaskDemo, task_demo

SIZES = ["model.model_dim=16", "model.num_heads=2", "model.ff_dim=16", "training.steps=2"]
SMALL = {
    "classify": [*SIZES, "model.layers=1", "tokenizer.size=300", "training.batch_tokens=256"],
    "transcribe": [*SIZES, "model.encoder_layers=1", "model.decoder_layers=1", "training.batch_tokens=300",
                   "training.validation_sentences=2"],
    "generate": [*SIZES, "model.layers=1", "tokenizer.size=300", "training.batch_tokens=256"],
}  # fmt: skip
SCORES = {"classify": "accuracy", "transcribe": "WER", "generate": "perplexity"}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for lesson in LESSONS.values():
        monkeypatch.setattr(type(lesson), "train", 60)
        monkeypatch.setattr(type(lesson), "held_out", 12)


@pytest.mark.parametrize("task", LESSONS)
def test_the_whole_way_ends_with_scores_answers_and_commands_that_work(few: None, tmp_path: Path, task: str) -> None:
    told: list[str] = []
    made = task_demo(task, tmp_path / "demo", overrides=SMALL[task], tell=told.append)
    assert isinstance(made, TaskDemo)
    assert any(line.startswith(SCORES[task]) for line in made.scores)
    assert len(made.shown) == 5
    assert (made.finished.model / "config.json").is_file()
    program, *arguments = shlex.split(made.next_steps[0])
    assert program == "headwise"
    assert run(*arguments).code == 0
    again = task_demo(task, tmp_path / "demo", overrides=SMALL[task], tell=told.append)
    assert isinstance(again, TaskDemo)
    assert (again.shown, again.scores) == (made.shown, made.scores)
    assert any("is already trained" in line for line in told)


def test_a_task_without_a_demo_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no demo of the task 'fill'; choose one of translate, classify"):
        task_demo("fill", tmp_path / "demo")
    assert not (tmp_path / "demo").exists()
