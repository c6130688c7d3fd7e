"""Training from Python: a recipe, or files with sections of a recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwise as hw
from headwise.errors import HeadwiseError
from headwise.workflows.train_from_python import _recipe, train

TINY = {"family": "lm", "model_dim": 16, "num_heads": 2, "layers": 1, "ff_dim": 16, "max_length": 16}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"the {color} {animal}\n" for color in ("red", "blue") for animal in ("dog", "cat")) * 60)
    return path


def test_files_and_sections_train_a_model_that_loads(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = train(
        text=text, output=tmp_path / "run", tokenizer={"kind": "char"}, model=TINY,
        training={"steps": 4, "batch_tokens": 64, "validate_every": 4, "save_every": 4, "warmup": 1},
    )  # fmt: skip
    assert (finished.reason, finished.step) == ("steps", 4)
    assert "validation at update 4: loss" in capsys.readouterr().out
    assert "layers=1" in repr(hw.load(finished.run).model.settings)


def test_a_recipe_may_be_changed_by_settings(text: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[data]\ntext = "text.txt"\n[model]\nfamily = "lm"\n[training]\nsteps = 9\n')
    recipe, base = _recipe(path, {}, {"training.steps": 5, "model.dropout": 0.2})
    assert (recipe.training.steps, recipe.model.own["dropout"], base) == (5, 0.2, tmp_path)


def test_wrong_calls_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(HeadwiseError, match="train has no argument 'sauce'"):
        train(sauce="a", output=tmp_path / "run")
    with pytest.raises(HeadwiseError, match="give a recipe or 'text', not both"):
        train("a.toml", text="b", output=tmp_path / "run")
    with pytest.raises(HeadwiseError, match="there are no files"):
        train(output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
