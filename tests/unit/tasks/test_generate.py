from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import load_model, save_model
from headwise.config.recipe import build_recipe
from headwise.errors import ModelError, RecipeError, UsageError
from headwise.evaluation.perplexity import Perplexity
from headwise.tasks.generate import ENGINES, TASK, TextScores, unseen_tokens
from headwise.text.tokenizer import EOS, TokenizerPair


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


def test_bits_per_character_are_not_called_comparable_where_tokens_are_unknown() -> None:
    unknown = Perplexity(9.0, tokens=4, words=4, characters=20, signature="", unknown=2)
    assert "2 of 4 tokens are unknown" in TextScores(unknown).lines()[-1]
    assert TextScores(unknown).lines()[-1].endswith("not comparable with a model that knows them")
    assert "comparable" not in "".join(TextScores(replace(unknown, unknown=0)).lines())


def test_what_a_language_model_does_not_have_is_one_clear_line(language_model: Path) -> None:
    bundle = open_bundle(language_model)
    with pytest.raises(UsageError, match="evaluate it with --text FILE"):
        TASK.evaluate(bundle, source="a", reference=["b"])
    with pytest.raises(UsageError, match="has no target"):
        TASK.look(TASK.open(bundle), "the dog", "der Hund")
    with pytest.raises(UsageError, match="unknown engine 'abacus'; choose one of torch, ctranslate2"):
        TASK.open(bundle, "abacus")


def test_tokens_that_training_never_saw_are_never_generated(language_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the dog\nthe cat\n" * 5, encoding="utf-8")
    files = str(next(language_model.glob("*tokenizer.json")))
    recipe = build_recipe({"data": {"text": str(text)}, "tokenizer": {"files": files}, "model": {"family": "lm"}})
    assets = TASK.prepare(recipe, tmp_path, tmp_path / "cache").assets
    tokenizer = assets.tokenizers.target
    seen = set(tokenizer.encode("the dog")) | set(tokenizer.encode("the cat"))
    assert set(unseen_tokens(assets, "model")) == set(range(EOS + 1, tokenizer.size)) - seen

    old = open_bundle(language_model)
    save_model(tmp_path / "new", load_model(old), assets, family="lm")
    new = open_bundle(tmp_path / "new")
    options: dict[str, Any] = {"max_tokens": 60, "samples": 8, "temperature": 5.0, "seed": 1}
    allowed = {*seen, EOS}
    assert any(set(one.ids) - allowed for one in TASK.open(old).generate("the", **options))
    assert not any(set(one.ids) - allowed for one in TASK.open(new).generate("the", **options))
    greedy = [
        TASK.open(new, engine, precision="float32").generate("the", max_tokens=40, temperature=0.0)
        for engine in ENGINES
    ]
    assert greedy[0][0].ids == greedy[1][0].ids
    assert set(greedy[0][0].ids) <= allowed


def test_fine_tuning_does_not_forget_the_tokens_of_the_first_training(language_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the dog\n" * 5, encoding="utf-8")
    recipe = build_recipe({"data": {"text": str(text)}, "model": {"family": "lm"}})
    tokenizers = TokenizerPair.load(language_model)
    known = tokenizers.target.encode("the dog")
    seen, other = known[-1], next(token for token in range(EOS + 1, tokenizers.target.size) if token not in known)
    for before, after in (([seen, other], (other,)), ([seen], ()), ([], ())):
        start = Assets(tokenizers, preprocessing={"unseen_tokens": before} if before else {})
        assets = TASK.prepare(recipe, tmp_path, tmp_path / "cache", start=start).assets
        assert unseen_tokens(assets, "model") == after


@pytest.mark.parametrize("damaged", [[10**6], [-1], [True], ["the"], "the", {"the": 1}])
def test_unseen_tokens_that_are_not_tokens_are_refused(damaged: object, language_model: Path) -> None:
    assets = Assets(TokenizerPair.load(language_model), preprocessing={"unseen_tokens": damaged})
    with pytest.raises(ModelError, match="unseen_tokens must be ids of tokens"):
        unseen_tokens(assets, language_model)
