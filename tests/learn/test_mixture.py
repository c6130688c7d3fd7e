"""One model learns two tasks at once and does the one that its prefix names."""

from __future__ import annotations

import json
from pathlib import Path

from small_mixtures import TASKS, answer, texts, write_mixture_recipe

import headwise
from headwise.config.recipe import load_recipe
from headwise.workflows.train import train

MODEL = {"model_dim": 64, "num_heads": 4, "encoder_layers": 2, "decoder_layers": 2, "ff_dim": 128, "dropout": 0.0}
TRAINING = {
    "steps": 500, "batch_tokens": 400, "schedule": "linear", "learning_rate": 4e-3, "warmup": 30, "clip_norm": 1.0,
    "label_smoothing": 0.0, "validate_every": 500, "save_every": 500, "log_every": 100,
}  # fmt: skip


def test_a_mixture_learns_to_copy_and_to_reverse(tmp_path: Path) -> None:
    recipe = write_mixture_recipe(tmp_path, count=2000, model=MODEL, training=TRAINING)
    finished = train(*load_recipe(recipe), tmp_path / "run")
    sources = texts(200, seed=777)
    for task in TASKS:
        translator = headwise.load(finished.model, engine="torch", prefix=f"{task}: ")
        found = [one.text for one in translator.translate(sources, beam=1)]
        right = sum(one == answer(task, text) for one, text in zip(found, sources, strict=True))
        assert right / len(sources) >= 0.85, task
    # Each task has its own scores, in the log and in the card.
    records = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").open()]
    last = next(record for record in reversed(records) if record["event"] == "validation")
    card = json.loads((finished.model / "card.json").read_text())
    for name in ("bleu copy", "bleu reverse"):
        assert last[name] > 50
        assert card["validation"][name] == last[name]
    assert last["bleu"] == (last["bleu copy"] + last["bleu reverse"]) / 2
