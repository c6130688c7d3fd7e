"""Files alone are enough: a recipe is made of them, and it says why it is as it is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from headwise.config.recipe import build_recipe
from headwise.errors import UsageError
from headwise.text.phrasebook import write_corpus
from headwise.workflows.recipe_of_files import commented_recipe, load_or_make


def test_a_recipe_of_parallel_files_is_a_translator_and_of_a_text_a_language_model() -> None:
    recipe, _, name = load_or_make("", {"source": ["train.en.gz"], "target": ["train.de.gz"]}, "en,de")
    assert (recipe.task_name, recipe.data.languages, name) == ("translate", ("en", "de"), "train-en-de")
    recipe, _, name = load_or_make("", {"text": ["book.txt"]}, "", ["training.steps=5"])
    assert (recipe.task_name, recipe.training.steps, name) == ("generate", 5, "book")


def test_the_columns_of_a_table_stand_in_its_recipe() -> None:
    for field in ("table", "images", "sounds"):
        recipe, _, _ = load_or_make("", {field: ["train.tsv"]}, "", columns="message, intent")
        assert recipe.data.columns == ("message", "intent")


def test_contradictions_are_one_clear_line() -> None:
    for recipe, files in (("demo", {"text": ["a"]}), ("", {}), ("", {"text": ["a"], "source": ["b"]})):
        with pytest.raises(UsageError):
            load_or_make(recipe, files, "")
    with pytest.raises(UsageError, match=r"--set data\.columns=a,b"):
        load_or_make("demo", {}, "", columns="a,b")
    with pytest.raises(UsageError, match="not for --text"):
        load_or_make("", {"text": ["book.txt"]}, "", columns="a,b")


def test_the_written_recipe_holds_every_choice_with_its_reason_and_can_be_read_again(tmp_path: Path) -> None:
    files = write_corpus(tmp_path, train=500, held_out=50)
    text = commented_recipe({"source": [str(files["train.en"])], "target": [str(files["train.zh"])]}, "en,zh", tmp_path)
    recipe = build_recipe(tomllib.loads(text))
    assert recipe.model.preset == "tiny"
    assert recipe.data.split > 0
    assert "# 500 pairs" in text
