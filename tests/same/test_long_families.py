"""The families for long texts go the whole way: trained, saved, loaded and used, each in its tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from headwise.config.recipe import load_recipe
from headwise.text.listops import expressions, main
from headwise.workflows.load import load
from headwise.workflows.train import train

SIZES = {"model_dim": 16, "num_heads": 2, "layers": 1, "ff_dim": 16, "max_length": 64}
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("performer", "generate", {"features": 8}),
    ("performer", "classify", {"features": 8}),
    ("longformer", "classify", {"window": 8}),
    ("longformer", "fill", {"window": 8}),
    ("bigbird", "fill", {"block": 4, "random": 1}),
]


@pytest.mark.parametrize(("family", "task", "own"), KINDS, ids=lambda value: str(value))
def test_a_family_is_trained_saved_loaded_and_used(family: str, task: str, own: dict[str, Any], tmp_path: Path) -> None:
    main([str(tmp_path), "--train", "80", "--held-out", "10", "--shortest", "20", "--longest", "60"])
    lines = [one.text for one in expressions(60, 5, shortest=20, longest=60)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    values = {
        "task": task,
        "data": {"table": "train.csv"} if task == "classify" else {"text": "text.txt"},
        "tokenizer": {"kind": "word", "size": 60},
        "model": {"family": family, **SIZES, **own},
        "training": {"steps": 2, "batch_tokens": 256, "threads": 1, "label_smoothing": 0.0, "warmup": 1},
    }
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
    recipe, base = load_recipe(tmp_path / "recipe.toml")
    model: Any = load(train(recipe, base, tmp_path / "run").model)
    if task == "generate":
        assert len(model.generate("[MAX 1", max_tokens=5, temperature=0.0)[0].ids) == 5
    elif task == "classify":
        (found,) = model.classify([lines[0]])
        assert found.label in list("0123456789")
        assert sum(found.probabilities.values()) == pytest.approx(1.0, abs=1e-4)
    else:
        assert model.bundle.declared.name == family
