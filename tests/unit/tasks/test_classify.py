from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from small_tables import RECIPE, write_table_recipe

from headwise.bundle.checkpoint import checkpoint_path
from headwise.bundle.directory import open_bundle, read_json, write_config, write_json
from headwise.config.recipe import build_recipe, load_recipe
from headwise.data.batch import Batch
from headwise.errors import ModelError, RecipeError, UsageError
from headwise.losses import BatchLoss, class_loss
from headwise.models.bert import Bert
from headwise.tasks.classify import TASK, LabelScorer
from headwise.workflows.train import train


def network() -> Bert:
    torch.manual_seed(1)
    return Bert(vocab=20, classes=3, model_dim=16, num_heads=2, layers=1, ff_dim=16, dropout=0.0)


def batch() -> Batch:
    torch.manual_seed(2)
    return Batch.of((torch.randint(4, 20, (6, 5)),), torch.tensor([0, 0, 0, 0, 1, 2]), ignore=-1)


def test_weights_of_one_change_nothing_and_others_scale_each_row() -> None:
    model, rows = network(), batch()
    plain, weighted = class_loss(model, rows, 0.1), class_loss(model, rows, 0.1, torch.ones(3))
    assert plain.total.item() == pytest.approx(weighted.total.item(), rel=1e-5)
    assert plain.log_loss.item() == pytest.approx(weighted.log_loss.item(), rel=1e-5)
    by_row = [class_loss(model, part, 0.1).total.item() for part in rows.split(6)]
    found = class_loss(model, rows, 0.1, torch.tensor([0.5, 2.0, 4.0]))
    assert found.total.item() == pytest.approx(
        sum(w * one for w, one in zip([0.5] * 4 + [2.0, 4.0], by_row, strict=True)), rel=1e-5
    )
    assert found.count == 6


def test_answers_come_with_the_loss_outside_of_training_only() -> None:
    model, rows = network(), batch()
    assert class_loss(model, rows).answers is None
    with torch.no_grad():
        answers = class_loss(model, rows).answers
    assert answers is not None
    assert answers.tolist() == model(rows.inputs[0]).argmax(dim=-1).tolist()


@pytest.mark.parametrize(("best", "step"), [("accuracy", 2), ("macro_f1", 4)])
def test_the_score_that_the_recipe_names_picks_the_best_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, best: str, step: int
) -> None:
    measured = iter([(0.9, 0.2), (0.6, 0.5), (0.5, 0.4)])
    monkeypatch.setattr(
        LabelScorer, "__call__", lambda scorer: (dict(zip(TASK.scores, next(measured), strict=True)), [])
    )
    training = {"steps": 6, "validate_every": 2, "save_every": 6, "best": best}
    recipe, base = load_recipe(write_table_recipe(tmp_path, training=training))
    finished = train(recipe, base, tmp_path / "run")
    assert finished.best["step"] == open_bundle(finished.model).card["validation"]["step"] == step
    kept = checkpoint_path(tmp_path / "run/checkpoints", step) / "model"
    assert open_bundle(finished.model).files["model.safetensors"] == open_bundle(kept).files["model.safetensors"]


def test_the_scorer_reads_accuracy_off_the_batches_and_begins_anew() -> None:
    scorer, zero = LabelScorer(("a", "b", "c")), torch.zeros(())
    scorer.add(batch(), BatchLoss(zero, zero, 6, torch.tensor([0, 0, 0, 1, 1, 1])))
    scores, samples = scorer()
    assert scores["accuracy"] == pytest.approx(4 / 6)
    assert scores["macro_f1"] == pytest.approx((6 / 7 + 2 / 4 + 0) / 3)
    assert samples == []
    assert scorer()[0]["accuracy"] == 0


def test_a_recipe_without_data_to_classify_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"give one of data\.images, data\.table"):
        TASK.check(build_recipe({**RECIPE, "data": {"text": "a.txt"}}))


def test_labels_must_be_as_many_as_classes(classifier_model: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(classifier_model, model)
    labels = read_json(model / "labels.json")["labels"]
    write_json(model / "labels.json", {"labels": labels[:-1]})
    write_config(model, open_bundle(model, verify=False))
    with pytest.raises(ModelError, match="has 2 labels, but 3 classes"):
        TASK.open(open_bundle(model))


def test_an_unknown_engine_is_refused(classifier_model: Path) -> None:
    with pytest.raises(UsageError, match="unknown engine 'tpu'"):
        TASK.open(open_bundle(classifier_model), "tpu")
