"""Minutes become updates, and updates decide about warm-up and validation."""

from __future__ import annotations

from headwise.config.recipe import build_recipe
from headwise.workflows.train_plan import needs_plan, planned, updates_that_fit


def test_only_minutes_alone_need_a_plan() -> None:
    assert needs_plan(build_recipe({"training": {"minutes": 5.0}}))
    for others in ({"steps": 3}, {"epochs": 2}, {}):
        assert not needs_plan(build_recipe({"training": {**others}}))
    assert not needs_plan(build_recipe({"training": {"minutes": 5.0, "steps": 3}}))


def test_the_plan_has_an_end_in_updates_and_says_so() -> None:
    recipe, told = build_recipe({"training": {"minutes": 10.0, "schedule": "cosine"}}), list[str]()
    steps = updates_that_fit(recipe, 0.5)
    assert 1000 < steps < 1200
    plan = planned(recipe, steps, 0.5, epoch=500, tell=told.append).training
    assert (plan.minutes, plan.steps) == (None, steps)
    assert plan.warmup == steps // 10
    assert "updates fit in 10 minutes" in told[0]


def test_even_a_moment_has_one_update() -> None:
    assert updates_that_fit(build_recipe({"training": {"minutes": 0.001}}), 100.0) == 1
