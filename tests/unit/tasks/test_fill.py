from __future__ import annotations

from pathlib import Path

import pytest
from small_texts import write_fill_recipe

from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.config import schema
from headwise.config.recipe import build_recipe, load_recipe
from headwise.errors import RecipeError, UsageError
from headwise.tasks.fill import TASK
from headwise.text.tokenizer import Tokenizer, TokenizerPair
from headwise.text.vocabulary import MASK


def test_the_tokenizer_gets_a_mask_and_the_network_an_output_over_it(tmp_path: Path) -> None:
    recipe, base = load_recipe(write_fill_recipe(tmp_path))
    prepared = TASK.prepare(recipe, base, tmp_path / "cache")
    tokenizer = prepared.assets.tokenizers.target
    assert tokenizer.find(MASK) == tokenizer.size - 1
    assert TASK.sizes(prepared.assets, recipe) == {"vocab": tokenizer.size, "classes": None}
    again = TASK.prepare(recipe, base, tmp_path / "cache")
    assert again.training.directory == prepared.training.directory


def test_a_tokenizer_without_a_mask_is_refused_with_a_remedy(tmp_path: Path) -> None:
    recipe, base = load_recipe(write_fill_recipe(tmp_path))
    plain = Assets(TokenizerPair.one(Tokenizer.train(["a b"], schema.Tokenizer(kind="word", size=20))))
    store = TASK.prepare(recipe, base, tmp_path / "cache").training
    with pytest.raises(RecipeError, match="has no token '<mask>' for gaps; start from a model"):
        TASK.batches(store, recipe, plain, 24)


def test_subword_regularisation_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"tokenizer\.dropout"):
        TASK.check(build_recipe({"model": {"family": "bert"}, "tokenizer": {"dropout": 0.1}}))


def test_evaluation_needs_a_text_and_engines_are_known(filler_model: Path) -> None:
    with pytest.raises(UsageError, match="evaluate it with --text FILE only"):
        TASK.evaluate(open_bundle(filler_model), source="x")
    with pytest.raises(UsageError, match="unknown engine 'tpu'"):
        TASK.open(open_bundle(filler_model), "tpu")
