"""Small trained encoders that several test files share: made once per session, in seconds, with a fixed seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_pictures import write_picture_recipe
from small_tables import labelled_texts, write_table, write_table_recipe
from small_texts import write_embed_recipe, write_fill_recipe, write_span_recipe


def train_recipe(recipe: Path, run: Path, *overrides: str) -> Path:
    """Trains a recipe file; returns the model directory."""
    from headwise.config.recipe import load_recipe
    from headwise.workflows.train import train

    return train(*load_recipe(recipe, overrides), run).model


@pytest.fixture(scope="session")
def classifier_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of animals, colours and numbers; its tables are in the folder above its run."""
    folder = tmp_path_factory.mktemp("classifier")
    return train_recipe(write_table_recipe(folder), folder / "run")


@pytest.fixture(scope="session")
def pair_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of pairs: what most words of both texts are."""
    folder = tmp_path_factory.mktemp("pairs")
    columns = ("text", "second", "label")
    recipe = write_table_recipe(folder, data={"columns": list(columns)})
    for seed, name in enumerate(("train", "val")):
        rows = [(*cut_in_two(text), label) for text, label in labelled_texts(300, seed)]
        write_table(folder / f"{name}.csv", rows, columns)
    return train_recipe(recipe, folder / "run")


def cut_in_two(text: str) -> tuple[str, str]:
    first, second = text.split(" ", 1)
    return first, second


@pytest.fixture(scope="session")
def picture_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of stripes, lying or standing, in grey pictures of 8 pixels."""
    folder = tmp_path_factory.mktemp("pictures")
    return train_recipe(write_picture_recipe(folder, training={"steps": 60}), folder / "run")


@pytest.fixture(scope="session")
def filler_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder that knows the order of some words; its texts are in the folder above its run."""
    folder = tmp_path_factory.mktemp("filler")
    return train_recipe(write_fill_recipe(folder), folder / "run")


@pytest.fixture(scope="session")
def span_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and decoder that know the same order, and fill gaps of one or two words."""
    folder = tmp_path_factory.mktemp("spans")
    return train_recipe(write_span_recipe(folder), folder / "run")


@pytest.fixture(scope="session")
def embedder_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder that knows which texts are about the same words."""
    folder = tmp_path_factory.mktemp("embedder")
    return train_recipe(write_embed_recipe(folder), folder / "run")
