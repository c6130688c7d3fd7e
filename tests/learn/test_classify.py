"""A classifier must learn which words decide, from scratch, and again from its own model."""

from __future__ import annotations

from pathlib import Path

from fixtures_encoders import train_recipe
from small_tables import labelled_texts, write_table, write_table_recipe

import headwise


def accuracy(model: Path, rows: list[tuple[str, str]]) -> float:
    answers = headwise.load(model, engine="torch").classify([text for text, _ in rows])
    return sum(answer.label == label for answer, (_, label) in zip(answers, rows, strict=True)) / len(rows)


def test_learns_what_a_text_is_about_to_95_percent(classifier_model: Path) -> None:
    assert accuracy(classifier_model, labelled_texts(300, 9)) >= 0.95


def test_a_rare_label_is_found_more_often_with_balanced_weights(tmp_path: Path) -> None:
    rows = [row for row in labelled_texts(1500, 5) if row[1] != "numbers"]
    rare = [row for row in rows if row[1] == "animals"][:25]
    common = [row for row in rows if row[1] == "colours"][:500]
    test = [row for row in labelled_texts(900, 6) if row[1] == "animals"]
    found = {}
    for weights in ("none", "balanced"):
        folder = tmp_path / weights
        folder.mkdir()
        recipe = write_table_recipe(folder, training={"class_weights": weights, "steps": 40})
        write_table(folder / "train.csv", rare + common)
        write_table(folder / "val.csv", [row for row in labelled_texts(100, 7) if row[1] != "numbers"])
        found[weights] = accuracy(train_recipe(recipe, folder / "run"), test)
    assert found["balanced"] > found["none"] + 0.05
