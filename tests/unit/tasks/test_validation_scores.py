from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fixtures_models import english_sentences, german

from headwise.bundle.weights import open_model
from headwise.config.recipe import build_recipe
from headwise.config.schema import Recipe
from headwise.tasks.validation_scores import SAMPLES, calibration, make_scorer, validation_pairs


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    sources = english_sentences(12, seed=3)
    (tmp_path / "val.en").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    (tmp_path / "val.de").write_text("".join(f"{german(line)}\n" for line in sources), encoding="utf-8")
    validation = {"source": str(tmp_path / "val.en"), "target": str(tmp_path / "val.de")}
    data = {"languages": ["en", "de"], "validation": validation}
    return build_recipe({"data": data, "training": {"validation_sentences": 10}})


def test_the_first_sentences_are_taken_as_many_as_the_recipe_decodes(recipe: Recipe) -> None:
    (part,) = validation_pairs(recipe)
    assert part.sources == english_sentences(12, seed=3)[:10]
    assert part.references == [german(line) for line in part.sources]
    assert set(part.prefixes) == {""}
    assert validation_pairs(build_recipe({})) == []


def test_a_scorer_measures_bleu_chrf_and_empty_outputs_and_shows_samples(recipe: Recipe, word_model: Path) -> None:
    (part,) = validation_pairs(recipe)
    _, network, tokenizers = open_model(word_model)
    scores, samples = make_scorer(network, tokenizers, recipe, [part])()
    assert set(scores) == {"bleu", "chrf", "empty"}
    assert scores["bleu"] > 90
    assert scores["chrf"] > 90
    assert scores["empty"] == 0.0
    assert [sample[:2] for sample in samples] == list(zip(part.sources, part.references, strict=True))[:SAMPLES]


def test_a_calibration_says_what_log_probabilities_mean(recipe: Recipe, word_model: Path) -> None:
    (part,) = validation_pairs(recipe)
    found = calibration(word_model, [part])
    assert all(0.0 <= quality <= 1.0 for quality in found["quality"])
    assert calibration(word_model, [replace(part, sources=[""], references=[""], prefixes=[""])]) == {}
