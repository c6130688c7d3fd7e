from __future__ import annotations

from pathlib import Path

import pytest

from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.config.recipe import build_recipe
from headwise.errors import RecipeError, UsageError
from headwise.tasks.generate import TASK
from headwise.text.tokenizer import TokenizerPair


def test_the_network_is_as_large_as_the_vocabulary(language_model: Path) -> None:
    tokenizers = TokenizerPair.load(language_model)
    recipe = build_recipe({"model": {"family": "lm"}})
    assert TASK.sizes(Assets(tokenizers), recipe) == {"vocab": tokenizers.target.size}


def test_regularisation_of_running_text_is_refused() -> None:
    for name in ("dropout", "target_dropout"):
        with pytest.raises(RecipeError, match="for translation"):
            TASK.check(build_recipe({"model": {"family": "lm"}, "tokenizer": {name: 0.1}}))


def test_lines_have_log_probabilities_and_the_text_a_perplexity(language_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("the dog\nthe cat\n", encoding="utf-8")
    bundle = open_bundle(language_model)
    ((first, second),) = TASK.score(bundle, {"text": str(text)})
    assert first.log_prob < 0 > second.log_prob
    assert "".join(first.tokens).replace("▁", " ").strip() == "the dog"
    scores = TASK.evaluate(bundle, text=str(text))
    assert scores.as_dict()["perplexity"] == pytest.approx(scores.perplexity.value)
    assert [line.split()[0] for line in scores.lines()] == ["perplexity", "per", "bits"]


def test_what_a_language_model_does_not_have_is_one_clear_line(language_model: Path) -> None:
    bundle = open_bundle(language_model)
    with pytest.raises(UsageError, match="evaluate it with --text FILE"):
        TASK.evaluate(bundle, source="a", reference=["b"])
    with pytest.raises(UsageError, match="has no target"):
        TASK.look(TASK.open(bundle), "the dog", "der Hund")
    with pytest.raises(UsageError, match="unknown engine 'abacus'; choose one of torch, ctranslate2"):
        TASK.open(bundle, "abacus")
