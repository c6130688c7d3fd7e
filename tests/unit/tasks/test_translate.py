from __future__ import annotations

from pathlib import Path

import pytest
from fixtures_models import word_tokenizers

from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.config import schema
from headwise.config.recipe import build_recipe
from headwise.decoding.engine import AutoEngine
from headwise.errors import ModelError, RecipeError, UsageError
from headwise.tasks.translate import TASK, Translator, require_translator
from headwise.text.tokenizer import Tokenizer, TokenizerPair


def test_the_network_is_as_large_as_both_vocabularies() -> None:
    settings = schema.Tokenizer(kind="word", size=100)
    two = TokenizerPair(Tokenizer.train(["a b"], settings), Tokenizer.train(["c d e"], settings))
    with pytest.raises(RecipeError, match=r"model\.tie = 'all' needs tokenizer\.shared = true"):
        TASK.sizes(Assets(two), build_recipe({}))
    sizes = TASK.sizes(Assets(two), build_recipe({"model": {"tie": "target"}}))
    assert sizes == {"source_vocab": two.source.size, "target_vocab": two.target.size}
    one = word_tokenizers()
    assert TASK.sizes(Assets(one), build_recipe({})) == {
        "source_vocab": one.source.size,
        "target_vocab": one.source.size,
    }


def test_engines_are_opened_by_name(word_model: Path) -> None:
    bundle = open_bundle(word_model)
    assert TASK.open(bundle, "torch").engine.name == "torch"
    fast = TASK.open(bundle)
    assert isinstance(fast, Translator)
    assert isinstance(fast.engine, AutoEngine)
    assert fast.engine.name == "ctranslate2"
    with pytest.raises(UsageError, match="unknown engine 'abacus'; choose one of auto, torch, ctranslate2"):
        TASK.open(bundle, "abacus")


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_a_translator_shows_attention_by_torch(word_model: Path, engine: str) -> None:
    look = TASK.open(open_bundle(word_model), engine).look("red dog", "rot Hund")
    assert look.output.labels[:2] == ["rot", "Hund"]
    with pytest.raises(UsageError, match="cannot show attention; use the torch engine"):
        TASK.open(open_bundle(word_model), "ctranslate2").look("red dog", "rot Hund")


def test_lines_are_scored_token_by_token(word_model: Path, tmp_path: Path) -> None:
    (tmp_path / "en").write_text("red dog\nblue\n", encoding="utf-8")
    (tmp_path / "de").write_text("rot Hund\nHund\n", encoding="utf-8")
    files = {"source": str(tmp_path / "en"), "target": str(tmp_path / "de")}
    ((right, wrong),) = TASK.score(open_bundle(word_model), files)
    assert right.tokens == ("rot", "Hund")
    assert right.log_prob == pytest.approx(sum(right.log_probs))
    assert len(right.log_probs) == 3  # and the end of sentence
    assert right.log_prob > wrong.log_prob


def test_another_task_is_refused(word_model: Path, language_model: Path) -> None:
    require_translator(open_bundle(word_model))
    with pytest.raises(ModelError, match="is a model of the task 'generate', which does not translate"):
        require_translator(open_bundle(language_model))
