from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_tables import labelled_texts, write_table

from headwise.config.recipe import build_recipe
from headwise.errors import DataError, RecipeError
from headwise.workflows.run_directory import RunDirectory
from headwise.workflows.train_checks import check_data, check_settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"training": {"optimizer": "adafactor", "shard": True}}, "cannot split the state of adafactor"),
        ({"training": {"best": "beauty"}}, r"training\.best = 'beauty' is not a score of the task 'translate'"),
        ({"data": {"split": 0.0}, "training": {"best": "bleu"}}, r"need data\.validation"),
        ({"data": {"split": 0.0}, "training": {"patience": 3}}, r"need data\.validation"),
        ({"data": {"source": "-"}}, "put standard input into a file first"),
        (
            {"model": {"family": "lm", "cutoffs": [9]}, "training": {"label_smoothing": 0.1}},
            r"model\.cutoffs has no label smoothing",
        ),
        ({"model": {"family": "lm"}, "tokenizer": {"dropout": 0.1}}, "is for translation"),
        (
            {"training": {"schedule": "cosine", "learning_rate": 1e-4, "minimum_rate": 1e-3}},
            r"schedule 'cosine' falls to training\.minimum_rate = 0\.001, which must be below",
        ),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_before_any_work(values: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        check_settings(build_recipe({**values, "training": {"steps": 1, **values.get("training", {})}}))
    assert "\n" not in str(caught.value)


def test_data_too_small_to_hold_a_part_out_is_said_to_have_no_validation(tmp_path: Path) -> None:
    write_table(tmp_path / "small.csv", labelled_texts(50, 1))
    values: dict[str, Any] = {"task": "classify", "model": {"family": "bert"}}
    values["data"] = {"table": str(tmp_path / "small.csv")}
    run, told = RunDirectory(tmp_path / "run"), list[str]()
    check_data(build_recipe(values), run, told.append)
    assert "no validation; 50 rows are too few to hold some out unasked: set data.split" in told[-1]
    for asked in ({"patience": 2}, {"best": "macro_f1"}):
        with pytest.raises(RecipeError, match="need validation data, and 50 rows are too few"):
            check_data(build_recipe({**values, "training": asked}), run, told.append)
    values["data"]["split"] = 0.2
    check_data(build_recipe({**values, "training": {"patience": 2}}), run, told.append)


def test_text_that_cannot_be_right_is_refused(tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / f"train.{side}").write_text("\n" * 50, encoding="utf-8")
    data = {"source": str(tmp_path / "train.en"), "target": str(tmp_path / "train.de")}
    run, told = RunDirectory(tmp_path / "run"), list[str]()
    with pytest.raises(DataError, match="this data cannot be trained on"):
        check_data(build_recipe({"data": data}), run, told.append)
    assert told
