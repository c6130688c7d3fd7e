"""A run that was stopped at any moment ends with the bits of the run that was left alone. Kills: tests/chaos."""

from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from small_recipe import write_small_recipe

from headwise.config.recipe import load_recipe
from headwise.training.loop import Hook, Trainer
from headwise.workflows.train import Finished, train

CHANGES: dict[str, dict[str, Any]] = {
    "tokenizer": {"dropout": 0.1, "target_dropout": 0.1},
    "model": {"dropout": 0.2},
    "training": {"steps": 40, "accumulate": 2, "ema": 0.9, "average": 2, "validate_every": 8, "save_every": 3},
}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_small_recipe(tmp_path, **CHANGES)


def run(recipe: Path, output: Path, *overrides: str, hooks: tuple[Hook, ...] = ()) -> Finished:
    loaded, base = load_recipe(recipe, overrides)
    return train(loaded, base, output, hooks=hooks)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def result(output: Path) -> dict[str, str]:
    """Weights, optimizer, averages and generators of the last checkpoint, the published weights, and the log."""
    last = max((output / "checkpoints").glob("step-*"))
    files = (
        last / "training.safetensors",
        last / "model/model.safetensors",
        output / "model/model.safetensors",
        output / "log.jsonl",
    )
    return {path.name + str(index): digest(path) for index, path in enumerate(files)}


def test_the_same_recipe_and_seed_twice_give_identical_weights_and_another_seed_does_not(
    recipe: Path, tmp_path: Path
) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(recipe, tmp_path / name, "training.steps=10", f"training.seed={seed}")
    assert result(tmp_path / "a") == result(tmp_path / "b")
    assert result(tmp_path / "a")["training.safetensors0"] != result(tmp_path / "c")["training.safetensors0"]


class StopAt(Hook):
    """A polite signal from inside, at a given update."""

    def __init__(self, step: int, number: signal.Signals) -> None:
        self.step, self.number = step, number

    def begin(self, trainer: Trainer) -> None:
        self.armed = True

    def after_update(self, trainer: Trainer, update: object, batch: object) -> None:
        if trainer.step == self.step and self.armed:
            self.armed = False
            signal.raise_signal(self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_signal_saves_and_the_same_command_goes_on_exactly(
    recipe: Path, tmp_path: Path, number: signal.Signals
) -> None:
    run(recipe, tmp_path / "alone")
    stopped = run(recipe, tmp_path / "stopped", hooks=(StopAt(17, number),))
    assert (stopped.reason, stopped.step) == (number.name, 17)
    assert (tmp_path / "stopped/checkpoints/step-00000017/manifest.json").is_file()
    finished = run(recipe, tmp_path / "stopped")
    assert finished.reason == "steps"
    assert result(tmp_path / "stopped") == result(tmp_path / "alone")


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(recipe: Path, tmp_path: Path) -> None:
    run(recipe, tmp_path / "alone")
    run(recipe, tmp_path / "hurt", hooks=(StopAt(17, signal.SIGINT),))
    newest = tmp_path / "hurt/checkpoints/step-00000017"
    tensors = bytearray((newest / "training.safetensors").read_bytes())
    tensors[-1] ^= 1
    (newest / "training.safetensors").write_bytes(bytes(tensors))
    said: list[str] = []
    loaded, base = load_recipe(recipe)
    train(loaded, base, tmp_path / "hurt", tell=said.append)
    assert any("step-00000017" in line and "damaged" in line and "training.safetensors" in line for line in said)
    assert any("update 16" in line for line in said)  # the best so far was kept there
    assert result(tmp_path / "hurt") == result(tmp_path / "alone")


def test_a_finished_run_goes_on_when_its_budget_grows_and_not_otherwise(recipe: Path, tmp_path: Path) -> None:
    from headwise.errors import UsageError

    run(recipe, tmp_path / "long", "training.average=0")
    run(recipe, tmp_path / "short", "training.steps=20", "training.average=0")
    with pytest.raises(UsageError, match="finished run"):
        run(recipe, tmp_path / "short", "training.steps=20", "training.average=0")
    with pytest.raises(UsageError, match=r"model\.dropout"):
        run(recipe, tmp_path / "short", "training.steps=30", "training.average=0", "model.dropout=0.3")
    run(recipe, tmp_path / "short", "training.steps=40", "training.average=0")
    names = ["step-00000040/training.safetensors", "step-00000040/model/model.safetensors"]
    for name in names:
        assert digest(tmp_path / "short/checkpoints" / name) == digest(tmp_path / "long/checkpoints" / name)


def test_the_log_says_what_was_computed_and_times_are_kept_apart(recipe: Path, tmp_path: Path) -> None:
    run(recipe, tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    training = [r for r in records if r["event"] == "train"]
    assert [r["step"] for r in training] == list(range(2, 41, 2))
    assert {r["step"] for r in records if r["event"] == "validation"} == {8, 16, 24, 32, 40}
    assert all("bleu" in r and len(r["samples"]) == 2 for r in records if r["event"] == "validation")
    assert records[-1]["event"] == "end"
    assert not any("second" in key for r in records for key in r)
    times = [json.loads(line) for line in (tmp_path / "run/times.jsonl").read_text().splitlines()]
    assert all(t["tokens_per_second"] > 0 for t in times)
