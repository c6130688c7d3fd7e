"""`headwise init` writes a recipe that `headwise train` takes, and training needs no recipe at all."""

from __future__ import annotations

import tomllib
from pathlib import Path

from command import Command

from headwise.text.phrasebook import write_corpus


def test_init_writes_a_recipe_and_never_over_a_file(headwise: Command, tmp_path: Path) -> None:
    files = write_corpus(tmp_path, train=400, held_out=40)
    sides = ["--source", files["train.en"], "--target", files["train.zh"], "--languages", "en,zh"]
    code, _, err = headwise("init", tmp_path / "mine.toml", *sides)
    assert code == 0, err
    assert tomllib.loads((tmp_path / "mine.toml").read_text(encoding="utf-8"))["model"]["preset"] == "tiny"
    code, _, err = headwise("init", tmp_path / "mine.toml", *sides)
    assert code == 2
    assert "exists already" in err


def test_training_from_files_alone_tells_its_choices_and_keeps_them_for_a_resumed_run(
    headwise: Command, tmp_path: Path
) -> None:
    files = write_corpus(tmp_path, train=400, held_out=40)
    sides = ["--source", files["train.en"], "--target", files["train.zh"], "--languages", "en,zh"]
    small = ["--set", "model.preset=tiny", "--set", "model.model_dim=16", "--set", "model.ff_dim=16"]
    run = ["train", *sides, *small, "--set", "training.minutes=0.05", "--output", tmp_path / "run"]
    code, _, err = headwise(*run)
    assert code == 0, err
    assert "data.split=" in err
    assert "updates fit in 0.05 minutes" in err
    stored = tomllib.loads((tmp_path / "run" / "recipe.toml").read_text(encoding="utf-8"))
    assert stored["training"]["steps"] >= 1
    assert "minutes" not in stored["training"]
    assert stored["data"]["split"] > 0
    code, _, err = headwise(*run)
    assert code == 2
    assert "finished run" in err


def test_print_recipe_shows_what_is_chosen_for_the_data_and_not_what_is_chosen_by_timing(
    headwise: Command, tmp_path: Path
) -> None:
    files = write_corpus(tmp_path, train=400, held_out=40)
    sides = ["--source", files["train.en"], "--target", files["train.zh"], "--languages", "en,zh"]
    code, out, err = headwise("train", *sides, "--set", "training.minutes=5", "--print-recipe")
    assert code == 0, err
    shown = tomllib.loads(out)
    assert (shown["model"]["preset"], shown["training"]["schedule"], shown["data"]["split"]) == ("tiny", "cosine", 0.1)
    assert "warmup" not in shown["training"]
    code, out, _ = headwise("train", *sides, "--set", "training.warmup=7", "--print-recipe")
    assert tomllib.loads(out)["training"]["warmup"] == 7
    code, out, _ = headwise("train", "--source", "missing.en", "--target", "missing.de", "--print-recipe")
    assert code == 0
    assert tomllib.loads(out)["data"]["source"] == ["missing.en"]
