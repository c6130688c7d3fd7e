"""A vocabulary that is chosen fits the text, whatever the task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_tables import labelled_texts, write_table

from headwise.config.recipe import build_recipe
from headwise.tasks import find_task
from headwise.tasks.choices import choices_for

TEXT = {"text": "text.txt"}
RECIPES: dict[str, dict[str, Any]] = {
    "classify": {"data": {"table": "table.csv"}, "model": {"family": "bert"}},
    "embed": {"data": {"table": "table.csv", "columns": ["text", "label"]}, "model": {"family": "bert"}},
    "fill": {"data": TEXT, "model": {"family": "bert"}},
    "generate": {"data": TEXT, "model": {"family": "lm"}},
    "translate": {"data": {"source": "text.txt", "target": "labels.txt"}},
}
APART = {**RECIPES["translate"], "tokenizer": {"shared": False}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few words, many times."""
    place, rows = tmp_path_factory.mktemp("few-words"), labelled_texts(400, 1)
    write_table(place / "table.csv", rows)
    for name, lines in zip(("text.txt", "labels.txt"), zip(*rows, strict=True), strict=True):
        (place / name).write_text("".join(f"{line}\n" for line in lines))
    return place


@pytest.mark.parametrize(
    ("task", "values"), [*RECIPES.items(), ("translate", APART)], ids=[*RECIPES, "translate-unshared"]
)
def test_a_chosen_vocabulary_is_no_larger_than_the_text_allows(
    folder: Path, tmp_path: Path, task: str, values: dict[str, Any]
) -> None:
    recipe, doing = build_recipe({"task": task, **values}), find_task(task)
    completed, taken = choices_for(recipe, folder, doing.examine(recipe, folder).facts, tmp_path)
    assert {choice.key: choice.value for choice in taken}["tokenizer.size"] == completed.tokenizer.size < 500
    trained = [path.name for path in tmp_path.glob("tokenizer-*")]
    tokenizers = doing.prepare(completed, folder, tmp_path).assets.tokenizers
    assert completed.tokenizer.size == tokenizers.source.size == tokenizers.target.size
    assert trained == [path.name for path in tmp_path.glob("tokenizer-*")], "preparation finds it"


def test_a_size_that_the_recipe_names_is_left_alone(folder: Path, tmp_path: Path) -> None:
    recipe = build_recipe({"task": "generate", **RECIPES["generate"], "tokenizer": {"size": 9000}})
    completed, _ = choices_for(recipe, folder, find_task("generate").examine(recipe, folder).facts, tmp_path)
    assert completed.tokenizer.size == 9000
    assert not list(tmp_path.iterdir())
