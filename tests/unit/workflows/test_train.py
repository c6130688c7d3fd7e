"""What a recipe can ask of a run: budgets, early stopping, averaging, fine-tuning."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from small_pictures import write_picture_recipe
from small_recipe import small_values

from headwise.bundle.averaging import average_weights
from headwise.bundle.directory import open_bundle
from headwise.config.recipe import build_recipe, load_recipe
from headwise.errors import RecipeError
from headwise.text.phrasebook import write_corpus
from headwise.text.tokenizer import TokenizerPair
from headwise.training.loop import Hook
from headwise.workflows import train as train_module
from headwise.workflows.train import Finished, train


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, train=300, held_out=20)
    return folder


def run(
    corpus: Path, output: Path, model: dict[str, Any] | None = None, hooks: Sequence[Hook] = (), **training: Any
) -> Finished:
    settings = {"batch_tokens": 300, "validate_every": 5, "save_every": 5, "log_every": 5, **training}
    values = small_values(model={"dropout": 0.0}, training=settings)
    recipe = build_recipe(values if model is None else {**values, "model": model})
    return train(recipe, corpus, output, hooks=hooks)


class StopAtOnce(Hook):
    def begin(self, trainer: Any) -> None:
        raise StopIteration


def records(output: Path, event: str) -> list[dict[str, Any]]:
    lines = (output / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["event"] == event]


def test_the_first_budget_that_is_reached_ends_the_run(corpus: Path, tmp_path: Path) -> None:
    assert run(corpus, tmp_path / "steps", steps=7, epochs=50).reason == "steps"
    by_epochs = run(corpus, tmp_path / "epochs", steps=10_000, epochs=1)
    assert by_epochs.reason == "epochs"
    assert sum(r["tokens"] for r in records(tmp_path / "epochs", "train")[-1:]) > 0
    assert run(corpus, tmp_path / "minutes", minutes=1e-4, steps=10_000).reason == "minutes"


def test_early_stopping_ends_a_run_that_does_not_get_better(corpus: Path, tmp_path: Path) -> None:
    # With no learning at all the second validation is no better than the first.
    stuck = run(corpus, tmp_path / "run", steps=1000, patience=3, learning_rate=1e-30, schedule="constant", warmup=0)
    assert (stuck.reason, stuck.step) == ("patience", 20)
    assert stuck.best["step"] == 5


def test_the_average_at_the_end_is_the_mean_of_the_last_checkpoints(corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    finished = run(corpus, output, steps=30, average=3, learning_rate=0.3)
    (record,) = records(output, "average")
    _, mean = average_weights([output / f"checkpoints/step-{step:08d}" for step in (20, 25, 30)])
    published = load_file(output / "model/model.safetensors")
    is_mean = all(torch.equal(published[name], tensor) for name, tensor in mean.items())
    assert is_mean == record["best"]
    assert finished.best["log_loss"] <= record["log_loss"]


def test_fine_tuning_starts_from_the_weights_and_tokenizer_of_a_model(corpus: Path, tmp_path: Path) -> None:
    first = run(corpus, tmp_path / "first", steps=40)
    start = {"from": str(first.model), "dropout": 0.1}
    second = run(corpus, tmp_path / "second", model=start, steps=5, learning_rate=1e-30, schedule="constant", warmup=0)
    before, after = load_file(first.model / "model.safetensors"), load_file(second.model / "model.safetensors")
    assert all(torch.allclose(before[name], after[name], atol=1e-12) for name in before)
    assert TokenizerPair.load(first.model) == TokenizerPair.load(second.model)
    assert open_bundle(second.model).architecture["model_dim"] == 16
    assert second.best["log_loss"] == pytest.approx(first.best["log_loss"], rel=1e-5)
    with pytest.raises(RecipeError, match=r"model\.model_dim"):
        run(corpus, tmp_path / "third", model={**start, "model_dim": 32}, steps=5)


def test_weights_that_depend_on_pooling_are_not_fine_tuned_with_another(picture_model: Path, tmp_path: Path) -> None:
    values = tomllib.loads(write_picture_recipe(tmp_path).read_text())
    values["model"] = {"family": "vit", "from": str(picture_model), "pooling": "cls"}
    with pytest.raises(RecipeError, match=r"do not fit another pooling: remove model\.pooling"):
        train(build_recipe(values), tmp_path, tmp_path / "run")


def test_scores_fingerprints_and_calibration_are_in_the_card(corpus: Path, tmp_path: Path) -> None:
    finished = run(corpus, tmp_path / "run", steps=5)
    card = open_bundle(finished.model).card
    assert card["validation"]["step"] == 5
    assert "source" in card["data"]["fingerprints"]
    assert card["calibration"]["quality"]
    assert card["parameters"] == sum(t.numel() for t in load_file(finished.model / "model.safetensors").values())


@pytest.fixture
def pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of known speed."""
    monkeypatch.setattr(train_module, "seconds_per_update", lambda make, batches: 0.03)


@pytest.mark.usefixtures("pace")
def test_minutes_become_updates_once_so_that_any_schedule_knows_its_end(corpus: Path, tmp_path: Path) -> None:
    finished = run(corpus, tmp_path / "run", minutes=0.02, schedule="cosine", learning_rate=1e-3)
    stored = load_recipe(tmp_path / "run" / "recipe.toml")[0].training
    assert (stored.minutes, stored.steps, finished.reason) == (None, finished.step, "steps")
    assert finished.step == 37
    assert records(tmp_path / "run", "train")[-1]["rate"] == pytest.approx(0.0, abs=1e-9)


def test_a_long_run_of_a_known_number_of_updates_is_timed_and_logs_often(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_module, "seconds_per_update", lambda make, batches: 2.0)
    values = small_values(training={"batch_tokens": 300, "steps": 4000, "epochs": 20, "validate_every": 400})
    del values["training"]["log_every"]
    told: list[str] = []
    with pytest.raises(StopIteration):
        train(build_recipe(values), corpus, tmp_path / "run", hooks=[StopAtOnce()], tell=told.append)
    assert any(line.startswith("forecast: ") and "(2.00 s each)" in line for line in told)
    assert load_recipe(tmp_path / "run" / "recipe.toml")[0].training.log_every <= 5


@pytest.mark.usefixtures("pace")
def test_a_run_that_was_given_minutes_resumes_with_the_updates_that_it_planned(corpus: Path, tmp_path: Path) -> None:
    class StopAt(Hook):
        def after_update(self, trainer: Any, update: Any, batch: Any) -> None:
            if trainer.step == 2 and trainer.stop is None:
                trainer.ask_to_stop("SIGINT")

    options = {"minutes": 0.02, "schedule": "cosine", "learning_rate": 1e-3, "save_every": 2}
    run(corpus, tmp_path / "parts", hooks=[StopAt()], **options)
    planned = load_recipe(tmp_path / "parts" / "recipe.toml")[0]
    resumed = run(corpus, tmp_path / "parts", **options)
    assert resumed.step == planned.training.steps
    whole = train(planned, Path(), tmp_path / "whole")
    last = f"checkpoints/step-{resumed.step:08d}/model/model.safetensors"
    assert (whole.run / last).read_bytes() == (resumed.run / last).read_bytes()
