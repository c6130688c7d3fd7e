"""What a recipe leaves out is chosen sensibly; what it says is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwise.config.recipe import build_recipe, left_out
from headwise.tasks import find_task
from headwise.tasks.automatic import (
    FINE_TUNING_SHARE,
    DataFacts,
    after_timing,
    choose,
    paced,
    peak_rate,
    vocabulary_size,
)


def chosen(facts: DataFacts, **sections: Any) -> dict[str, Any]:
    recipe = build_recipe({"data": {"source": "a", "target": "b"}, **sections})
    completed, taken = choose(recipe, find_task(recipe.task_name).automatic(recipe, facts))
    assert not any(left_out(completed, choice.key) for choice in taken)
    assert all(choice.reason for choice in taken)
    return {choice.key: choice.value for choice in taken}


def pairs(count: int) -> DataFacts:
    return DataFacts(count, 60 * count, "pairs")


@pytest.mark.parametrize(
    ("count", "preset", "dropout", "vocabulary"),
    [(1_000, "tiny", 0.3, 500), (29_000, "tiny", 0.2, 4000), (200_000, "small", 0.1, 8000), (10**7, "base", 0.1, 8000)],
)
def test_a_corpus_of_any_size_gets_a_model_that_fits_it(
    count: int, preset: str, dropout: float, vocabulary: int
) -> None:
    found = chosen(pairs(count))
    assert (found["model.preset"], found["model.dropout"], found["tokenizer.size"]) == (preset, dropout, vocabulary)
    assert found["training.minutes"] == 30
    assert found["training.patience"] > 0
    assert 0 < found["data.split"] <= 0.1
    assert found["data.split"] * count <= 1001


def test_a_language_model_is_not_smoothed_and_gets_its_own_optimizer() -> None:
    text = {"data": {"text": "book.txt"}, "model": {"family": "lm"}}
    recipe = build_recipe(text)
    completed, _ = choose(recipe, find_task("generate").automatic(recipe, DataFacts(40_000, 5_000_000)))
    assert completed.training.label_smoothing == 0.0
    assert (completed.training.optimizer, completed.model.preset, completed.tokenizer.size) == (
        "adamw",
        "lm-small",
        8000,
    )


def test_what_the_recipe_says_is_kept_and_a_schedule_of_its_own_is_not_mixed_with_ours() -> None:
    validation = {"source": "c", "target": "d"}
    found = chosen(
        pairs(29_000),
        data={"source": "a", "target": "b", "validation": validation},
        model={"preset": "small"},
        tokenizer={"size": 1234},
        training={"steps": 10, "schedule": "noam"},
    )
    assert found == {}


def test_warm_up_and_validations_follow_from_the_number_of_updates() -> None:
    recipe = build_recipe({})
    for steps in (1, 27, 900, 30_000):
        found = {choice.key: choice.value for choice in after_timing(recipe, steps, 0.2)}
        assert 1 <= found["training.warmup"] <= max(1, steps // 10)
        assert found["training.warmup"] <= 1000
        assert found["training.log_every"] * 0.2 <= 10


def test_a_known_number_of_updates_has_a_warm_up_that_fits_unless_the_schedule_is_the_papers() -> None:
    chosen, taken = paced(build_recipe({"training": {"steps": 300, "schedule": "cosine"}}), 300, None)
    assert (chosen.training.warmup, chosen.training.validate_every, chosen.training.log_every) == (30, 25, 5)
    assert all(choice.reason == "300 updates" for choice in taken)
    papers, _ = paced(build_recipe({"training": {"steps": 300, "schedule": "noam"}}), 300, None)
    assert papers.training.warmup == 4000
    own, _ = paced(build_recipe({"training": {"steps": 300, "schedule": "cosine", "warmup": 7}}), 300, None)
    assert own.training.warmup == 7


@pytest.mark.parametrize(
    ("own", "rate"),
    [
        ({"batch_tokens": 512}, 0.0025),
        ({"learning_rate": 0.001}, 0.001),
        ({"optimizer": "adamw"}, 0.0025),
        ({"warmup": 0.05}, 0.0025),
    ],
)
def test_one_setting_of_the_optimisation_does_not_bring_back_the_papers_schedule(
    own: dict[str, Any], rate: float
) -> None:
    recipe = build_recipe({"data": {"source": "a", "target": "b"}, "training": own})
    completed, _ = choose(recipe, find_task("translate").automatic(recipe, pairs(29_000)))
    assert (completed.training.schedule, completed.training.learning_rate) == ("cosine", rate)
    assert all(getattr(completed.training, name) == value for name, value in own.items())


def test_a_schedule_of_ones_own_gets_a_rate_and_a_factor_means_the_papers_schedule() -> None:
    assert chosen(pairs(29_000), training={"schedule": "linear"})["training.learning_rate"] == 0.0025
    assert "training.schedule" not in chosen(pairs(29_000), training={"learning_rate": 1.0})


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, ("adafactor", 0.02)),
        ({"schedule": "linear"}, ("adafactor", 0.02)),
        ({"optimizer": "adam"}, ("adam", 0.0025)),
        ({"learning_rate": 0.001}, ("adam", 0.001)),
        ({"schedule": "noam"}, ("adam", 1.0)),
    ],
)
def test_a_family_may_have_an_optimizer_of_its_own(own: dict[str, Any], expected: tuple[str, float]) -> None:
    recipe = build_recipe(
        {"data": {"source": "a", "target": "b"}, "model": {"family": "t5", "preset": "t5-tiny"}, "training": own}
    )
    completed, _ = choose(recipe, find_task("translate").automatic(recipe, pairs(29_000)))
    assert (completed.training.optimizer, completed.training.learning_rate) == expected


def test_norms_after_each_sub_layer_get_a_lower_rate() -> None:
    assert chosen(pairs(29_000), model={"preset": "tiny"})["training.learning_rate"] == 0.00125
    assert chosen(pairs(29_000), model={"preset": "tiny", "norm": "pre"})["training.learning_rate"] == 0.0025


def test_vocabularies_are_round_and_bounded() -> None:
    texts = [DataFacts(40, count) for count in (10, 400_000, 1_772_238, 10**9)]
    assert [vocabulary_size(facts) for facts in texts] == [500, 500, 3500, 8000]
    assert [vocabulary_size(pairs(count)) for count in (10, 1_000, 29_000, 10**6)] == [500, 500, 4000, 8000]
    chinese = DataFacts(25_440, 250_000, "pairs")  # few characters, many different ones
    assert vocabulary_size(chinese) == 3500


def test_a_short_run_cannot_overfit_and_gets_little_dropout() -> None:
    assert chosen(pairs(29_000), training={"minutes": 10.0})["model.dropout"] == 0.1
    assert chosen(pairs(29_000), training={"minutes": 60.0})["model.dropout"] == 0.2
    assert chosen(pairs(1_000), training={"minutes": 10.0})["model.dropout"] == 0.3


def test_dropout_inside_of_layers_is_left_out_where_the_family_has_it() -> None:
    found = chosen(pairs(29_000))
    assert (found["model.attention_dropout"], found["model.activation_dropout"]) == (0.0, 0.0)
    assert "model.attention_dropout" not in chosen(pairs(29_000), model={"family": "rnn"})
    assert "model.attention_dropout" not in chosen(pairs(29_000), model={"preset": "small"})


def test_a_model_that_is_fine_tuned_gets_a_low_falling_rate_by_its_own_width(word_model: Path) -> None:
    recipe = build_recipe({"model": {"from": str(word_model)}})
    chosen, _ = choose(recipe, find_task("translate").automatic(recipe, DataFacts(5000, 200_000, "pairs")))
    assert chosen.training.schedule == "linear"
    assert chosen.training.learning_rate == pytest.approx(0.2 * 2.5e-3 * (128 / 64) ** 0.5, rel=1e-3)
    assert chosen.training.warmup == 0.03
    assert chosen.model.preset is None


def test_the_rate_of_a_model_that_is_too_wide_for_any_machine_is_still_one() -> None:
    assert round(FINE_TUNING_SHARE * peak_rate(10**12), 6) > 0
    assert peak_rate(512) == 0.00125
