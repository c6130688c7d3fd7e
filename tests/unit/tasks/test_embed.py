from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_tables import write_table
from small_texts import write_embed_recipe

from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.config.recipe import build_recipe, load_recipe
from headwise.data.cursor import Cursor
from headwise.errors import DataError, RecipeError, UsageError
from headwise.tasks.embed import TASK


def test_pairs_are_examined_and_prepared_without_labels(tmp_path: Path) -> None:
    recipe, base = load_recipe(write_embed_recipe(tmp_path))
    examined = TASK.examine(recipe, base)
    assert (examined.report.unit, examined.report.labels, examined.facts.lines) == ("pairs", {}, 500)
    assert not examined.report.unusable
    prepared = TASK.prepare(recipe, base, tmp_path / "cache")
    assert (len(prepared.training), prepared.assets.labels) == (500, ())
    assert TASK.sizes(prepared.assets, recipe)["classes"] == 0
    name, lines = TASK.training_lines(recipe, base)
    assert (name, sum(1 for _ in lines)) == ("text", 500)


def test_fine_tuning_cuts_texts_where_its_start_model_does(tmp_path: Path) -> None:
    recipe, base = load_recipe(write_embed_recipe(tmp_path))
    text = TASK.prepare(recipe, base, tmp_path / "cache").assets.text
    start = Assets(text, preprocessing={"longest": 4, "texts": 2})
    prepared = TASK.prepare(recipe, base, tmp_path / "cache", start=start)
    assert dict(prepared.assets.preprocessing) == {"longest": 4}
    batches = [TASK.batches(prepared.training, recipe, assets, 64) for assets in (Assets(text), prepared.assets)]
    most, fewer = (int(of.make(Cursor()).inputs[1].max()) for of in batches)
    assert (most > 4, fewer) == (True, 4)


def test_a_share_of_the_pairs_can_be_held_out(tmp_path: Path) -> None:
    write_embed_recipe(tmp_path)
    data, words = {"table": "train.csv", "split": 0.1}, {"kind": "word", "size": 100}
    recipe = build_recipe({"task": "embed", "model": {"family": "bert"}, "data": data, "tokenizer": words})
    prepared = TASK.prepare(recipe, tmp_path, tmp_path / "cache")
    assert prepared.validation is not None
    assert len(prepared.training) + len(prepared.validation) == 500


def test_two_columns_are_needed() -> None:
    recipe = build_recipe({"task": "embed", "model": {"family": "bert"}, "data": {"table": "a", "columns": ["x"]}})
    with pytest.raises(RecipeError, match="two columns of a pair, not x"):
        TASK.check(recipe)


def test_a_table_is_evaluated_with_the_columns_of_the_training(embedder_model: Path, tmp_path: Path) -> None:
    bundle = open_bundle(embedder_model)
    trained = replace(bundle, card={**bundle.card, "recipe": {"data": {"columns": ["question", "answer"]}}})
    names = ("question", "answer", "text", "partner")
    table = str(write_table(tmp_path / "t.csv", [("dog", "dog", "dog", "cat"), ("red", "red", "red", "cat")], names))
    assert TASK.evaluate(trained, table=table).first == 1
    assert TASK.evaluate(trained, table=table, columns=["text", "partner"]).first < 1
    assert TASK.evaluate(bundle, table=table).first < 1


def test_grades_must_be_numbers_and_pairs_must_be_there(embedder_model: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv", [("a", "b", "1"), ("a", "c", "x")], ("text", "partner", "grade"))
    bundle = open_bundle(embedder_model)
    with pytest.raises(DataError, match=r"t\.csv:3: the grade 'x' is not a number"):
        TASK.evaluate(bundle, table=str(table), columns=["text", "partner", "grade"])
    write_table(table, [("a", "b")], ("text", "partner"))
    with pytest.raises(DataError, match="no pairs to evaluate"):
        TASK.evaluate(bundle, table=str(table))
    with pytest.raises(UsageError, match="evaluate it with --table"):
        TASK.evaluate(bundle, text="x")
