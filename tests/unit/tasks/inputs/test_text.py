from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_tables import RECIPE, labelled_texts, write_table

from headwise.bundle.assets import Assets
from headwise.config.recipe import build_recipe
from headwise.config.schema import Recipe
from headwise.data.cursor import Cursor
from headwise.errors import DataError, RecipeError
from headwise.tasks.inputs import all_inputs, inputs_of_model, inputs_of_recipe, inputs_of_store
from headwise.tasks.inputs.interface import Inputs
from headwise.tasks.inputs.text import INPUTS


def recipe(**data: object) -> Recipe:
    return build_recipe({**RECIPE, "data": {"table": "train.csv", **data}})


def prepare(folder: Path, start: Assets | None = None, **data: object):  # type: ignore[no-untyped-def]
    return INPUTS.prepare(recipe(**data), folder, folder / "cache", start=start)


def test_a_table_becomes_a_store_with_labels_by_name(tmp_path: Path) -> None:
    rows = labelled_texts(50, 1)
    write_table(tmp_path / "train.csv", rows)
    prepared = prepare(tmp_path)
    assert prepared.assets.labels == ("animals", "colours", "numbers")
    assert len(prepared.training) == 50
    batches = INPUTS.batches(prepared.training, recipe(), prepared.assets, 24, shuffle=False)
    seen = {}
    for index in range(batches.count(0)):
        batch = batches.make(Cursor(0, index))
        for line, code, ids in zip(batch.lines, batch.targets, batch.inputs[0], strict=True):
            text = prepared.assets.tokenizers.source.decode(ids.tolist())
            seen[int(line)] = (text, prepared.assets.labels[int(code)])
    assert [seen[line] for line in sorted(seen)] == rows
    assert min(seen) == 2, "the first line has the names"
    counts = INPUTS.label_counts(prepared.training, 3)
    assert counts.tolist() == [sum(label == name for _, label in rows) for name in prepared.assets.labels]


def test_a_split_has_every_label_on_both_sides_and_is_the_same_again(tmp_path: Path) -> None:
    write_table(tmp_path / "train.csv", labelled_texts(200, 1))
    prepared = prepare(tmp_path, split=0.1)
    assert prepared.validation is not None
    assert 15 <= len(prepared.validation) <= 25
    assert (INPUTS.label_counts(prepared.validation, 3) > 0).all()
    assert prepare(tmp_path, split=0.1).validation.directory == prepared.validation.directory


def test_the_labels_of_a_model_that_knows_them_all_keep_their_order(tmp_path: Path) -> None:
    write_table(tmp_path / "train.csv", labelled_texts(50, 1))
    labels = ("numbers", "animals", "colours", "plants")
    assert prepare(tmp_path, Assets(labels=labels)).assets.labels == labels
    assert prepare(tmp_path, Assets(labels=("x", "y"))).assets.labels == ("animals", "colours", "numbers")


def test_a_validation_label_that_is_not_in_training_is_refused_with_its_line(tmp_path: Path) -> None:
    write_table(tmp_path / "train.csv", labelled_texts(50, 1))
    write_table(tmp_path / "val.csv", [("dog", "animals"), ("fir", "plants")])
    with pytest.raises(DataError, match=r"val\.csv:3: the label 'plants'"):
        prepare(tmp_path, validation={"table": "val.csv"})


@pytest.mark.parametrize("columns", [["text"], ["a", "b", "c", "d"], ["a", "a"]])
def test_columns_must_be_one_or_two_texts_and_a_label(columns: list[str]) -> None:
    with pytest.raises(RecipeError, match=r"data\.columns must name"):
        INPUTS.check(recipe(columns=columns))


def test_the_kind_is_found_by_the_recipe_the_model_and_the_store(tmp_path: Path) -> None:
    write_table(tmp_path / "train.csv", labelled_texts(50, 1))
    prepared = prepare(tmp_path)
    assert inputs_of_recipe(recipe()) is INPUTS
    assert inputs_of_model(prepared.assets) is INPUTS
    assert inputs_of_store(prepared.training.directory) is INPUTS
    assert all_inputs()["table"] is INPUTS
    assert all(isinstance(one, Inputs) and one.field == field for field, one in all_inputs().items())


def test_long_texts_are_read_as_far_as_the_model_can(tmp_path: Path) -> None:
    write_table(tmp_path / "train.csv", labelled_texts(50, 1))
    assets = prepare(tmp_path).assets
    (long, short) = INPUTS.encode(["dog " * 100, "dog cat"], assets, 24)
    assert (len(long), len(short)) == (24, 4)
    assert (long[0], long[-1]) == (2, 3)
    ids, lengths = INPUTS.tensors([long, short])
    assert ids.shape == (2, 24)
    assert np.array_equal(lengths, [24, 4])
