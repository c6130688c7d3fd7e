"""A small ViT learns to tell stripes apart, with every kind of augmentation and of stem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_pictures import write_picture_recipe

import headwise
from headwise.config.recipe import load_recipe
from headwise.workflows.evaluate import evaluate
from headwise.workflows.train import train


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"images": {"shift": 1, "mixup": 0.2, "cutmix": 1.0, "erase": 0.2}},
        {"model": {"stem": "patches", "patch_size": 4, "pooling": "cls", "positions": "sinusoidal"}},
    ],
    ids=["plain", "mixed", "patches"],
)
def test_stripes_are_told_apart(tmp_path: Path, changes: dict[str, Any]) -> None:
    changes = {**changes, "training": {"steps": 80}}
    loaded, base = load_recipe(write_picture_recipe(tmp_path, **changes))
    train(loaded, base, tmp_path / "run")
    found = evaluate(str(tmp_path / "run/model"), images=str(tmp_path / "test-images-idx3-ubyte"))
    assert found.as_dict()["accuracy"] >= 0.95
    assert set(headwise.load(tmp_path / "run/model").labels) == {"lying", "standing"}
