"""Minutes become updates, and updates decide about warm-up and validation."""

from __future__ import annotations

from headwise.config.recipe import build_recipe
from headwise.tasks import find_task
from headwise.tasks.automatic import DataFacts, choose
from headwise.workflows.train_plan import foretold, planned, table, updates_that_fit


def test_the_plan_has_an_end_in_updates() -> None:
    recipe = build_recipe({"training": {"minutes": 10.0, "schedule": "cosine"}})
    steps = updates_that_fit(recipe, 0.5)
    assert 1000 < steps < 1200
    changed, taken = planned(recipe, steps, 0.5)
    assert (changed.training.minutes, changed.training.steps) == (None, steps)
    assert changed.training.warmup == steps // 10
    assert "training.warmup" in {choice.key for choice in taken}


def test_the_forecast_has_updates_time_per_epoch_and_memory() -> None:
    given = foretold(1200, 0.5, 400, 900_000_000, minutes=10)
    assert given == "forecast: 1,200 updates fit in 10 minutes (0.50 s each); 3.0 epochs of 3 min; memory 0.9 GB"
    known = foretold(30_000, 0.5, 40, 2_140_000_000)
    assert known == "forecast: 30,000 updates, 4.2 h (0.50 s each); 750.0 epochs of 20 s; memory 2.1 GB"


def test_choices_with_one_reason_share_a_row_and_rows_fit_the_terminal() -> None:
    recipe = build_recipe({"data": {"text": "book.txt"}, "model": {"family": "lm"}})
    _, taken = choose(recipe, find_task("generate").automatic(recipe, DataFacts(40_000, 5_000_000)))
    lines = table(taken)
    assert all(len(line) <= 80 for line in lines)
    row = next(line for line in lines if line.startswith("  40,000 lines"))
    assert row.endswith("model.preset=lm-small  model.dropout=0.2")
    said = " ".join(" ".join(line.split()) for line in lines)
    assert all(f"{choice.key}={choice.value}" in said and choice.reason in said for choice in taken)
    assert len(lines) < len(taken)


def test_even_a_moment_has_one_update() -> None:
    assert updates_that_fit(build_recipe({"training": {"minutes": 0.001}}), 100.0) == 1
