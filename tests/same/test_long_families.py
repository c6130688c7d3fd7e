"""The families for long texts go the whole way: trained, saved, loaded and used, each in its tasks."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
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
    ("longformer", "embed", {"window": 8}),
    ("bigbird", "classify", {"block": 4, "random": 1}),
    ("bigbird", "fill", {"block": 4, "random": 1}),
    ("bigbird", "embed", {"block": 4, "random": 1}),
]
DATA = {"classify": {"table": "train.csv"}, "embed": {"table": "pairs.csv"}}


@pytest.mark.parametrize(("family", "task", "own"), KINDS, ids=lambda value: str(value))
def test_a_family_is_trained_saved_loaded_and_used(family: str, task: str, own: dict[str, Any], tmp_path: Path) -> None:
    main([str(tmp_path), "--train", "80", "--held-out", "10", "--shortest", "20", "--longest", "60"])
    lines = [one.text for one in expressions(60, 5, shortest=20, longest=60)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (tmp_path / "pairs.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("text", "partner"), *zip(lines, lines[1:] + lines[:1], strict=True)])
    values = {
        "task": task,
        "data": DATA.get(task, {"text": "text.txt"}),
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
    elif task == "embed":
        assert model.embed(lines[:3]).shape == (3, 16)
    else:
        assert model.bundle.declared.name == family


# Trains one update on a text of nearly 16,384 tokens, and prints the peak of its memory in MB.
LONG = """
import json, resource, sys
from pathlib import Path
from headwise.config.recipe import build_recipe
from headwise.workflows.train import train
folder = Path(sys.argv[1])
train(build_recipe(json.loads(sys.argv[2])), folder, folder / "run")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""
LENGTH = 16_384


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "model"),
    [
        ("classify", {"family": "longformer", "preset": "longformer-tiny"}),
        ("classify", {"family": "bigbird", "preset": "bigbird-tiny"}),
        ("classify", {"family": "performer", "preset": "performer-tiny"}),
        ("generate", {"family": "performer", "preset": "performer-tiny"}),
    ],
    ids=lambda value: value if isinstance(value, str) else value["family"],
)
def test_tiny_widths_train_on_16_384_tokens_in_little_memory(task: str, model: dict[str, Any], tmp_path: Path) -> None:
    bounds = ["--shortest", str(LENGTH - 100), "--longest", str(LENGTH - 2)]
    main([str(tmp_path), "--train", "4", "--held-out", "1", *bounds])
    found = expressions(4, 5, shortest=LENGTH - 100, longest=LENGTH - 2)
    (tmp_path / "text.txt").write_text("".join(one.text + "\n" for one in found), encoding="utf-8")
    values = {
        "task": task,
        "data": {
            **DATA.get(task, {"text": "text.txt"}), "split": 0.3 if task == "classify" else 0.0,
            "filters": {"max_characters": 100_000},
        },
        "tokenizer": {"kind": "word", "size": 60},
        "model": model,
        "training": {
            "steps": 1, "batch_tokens": LENGTH, "threads": 1, "label_smoothing": 0.0, "warmup": 1, "log_every": 1,
        },
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", LONG, str(tmp_path), json.dumps(values)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 4096  # one matrix of scores of all pairs would have 4,096 MB
