"""The models that really ship with this package: whole, small, described, and they answer."""

from __future__ import annotations

import gzip
import json
import os
import tomllib
from pathlib import Path

import pytest

from headwise.bundle import shipped
from headwise.bundle.directory import open_bundle
from headwise.config.recipe import load_recipe, shipped_recipes
from headwise.evaluation.contamination import Overlap, overlap
from headwise.interop.ctranslate2.export import is_current
from headwise.workflows.models import ShippedModel, find_model, shipped_models
from headwise.workflows.package_model import ABOUT, LARGEST_TOGETHER, largest
from headwise.workflows.translate import open_translator

MODELS = shipped_models()
# A sentence of the kind that each is for, and a word that must be in its translation.
SENTENCES = {
    "multi30k-en-de": ("A man is riding a bicycle.", "Mann"),
    "multi30k-de-en": ("Ein Mann fährt Fahrrad.", "man"),
    "tatoeba-zh-en": ("我喜欢音乐。", "music"),
    "tatoeba-en-zh": ("I like music.", "音"),
}
each = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
each_translator = pytest.mark.parametrize(
    "model", [model for model in MODELS if model.task == "translate"], ids=lambda model: model.name
)


def test_what_ships_is_known_has_a_recipe_and_fits_together() -> None:
    known = tomllib.loads((shipped.FOLDER / ABOUT).read_text(encoding="utf-8"))
    names = {model.name for model in MODELS}
    assert set(SENTENCES) <= names <= set(known)
    assert names <= set(shipped_recipes())
    assert sum(model.size for model in MODELS) <= LARGEST_TOGETHER


@pytest.mark.parametrize("name", SENTENCES)
def test_it_answers_a_sentence_of_its_kind_on_both_engines(name: str) -> None:
    sentence, word = SENTENCES[name]
    for engine in ("ctranslate2", "torch"):
        (translation,) = open_translator(name, engine).translate([sentence])
        assert word in translation.text
        assert translation.stopped == "eos"


def test_what_is_required_stands_in_a_sentence_and_does_not_swell_it() -> None:
    translator = open_translator("multi30k-en-de", "torch")
    texts = ["Two women sit on a bench.", "A car is parked in front of the shop.", "{name} pushes 2 cars."]
    free = translator.translate(texts)
    held = translator.translate(texts, glossary={"women": "Damen", "car": "Wagen"}, protect=True)
    for text, term in zip(held, ("Damen", "Wagen", "{name}"), strict=True):
        assert term in text.text.split()
    for one, other in zip(held, free, strict=True):
        assert one.stopped == "eos"
        assert len(one.text.split()) <= len(other.text.split()) + 1


@each
def test_it_is_whole_and_small_and_ready_for_the_engine_that_it_is_opened_with(model: ShippedModel) -> None:
    bundle = open_bundle(model.name)
    assert (bundle.precision, bundle.task_name) == ("float16", model.task)
    assert model.size <= largest(model.task)
    fast = {"ctranslate2"} if any(score.engine == "int8" for score in model.scores) else set[str]()
    assert not fast or is_current(bundle, model.path / "ctranslate2" / "int8", "int8")
    assert {path.name for path in model.path.iterdir()} == {*bundle.files, "config.json", *fast}


@each_translator
def test_a_translator_is_found_by_its_languages(model: ShippedModel) -> None:
    assert find_model(model.source, model.target) == model.path
    assert model.score is not None
    assert (model.score.metric, model.score.engine) == ("BLEU", "int8")
    assert model.score.value > 10


@each
def test_its_card_says_what_it_is_and_how_good_without_paths_of_the_machine(model: ShippedModel) -> None:
    card = open_bundle(model.path).card
    assert set(card["about"]) == {"trained_on", "good_for", "limits", "licence", "source"}
    assert model.scores
    assert all(score.signature for score in model.scores)
    assert card["training"]["minutes"] > 0
    stored = card["stored"]
    assert stored["same_float16"] >= 0.95 * stored["sentences"]
    assert '"/' not in json.dumps(card["recipe"])


@each_translator
def test_the_card_knows_every_line_that_the_model_was_trained_on_and_none_that_tests_it(model: ShippedModel) -> None:
    corpora = os.environ.get("HEADWISE_DATA")
    if not corpora:
        pytest.skip("no corpora: set HEADWISE_DATA to their folder")
    recipe, folder = load_recipe(model.name, [], Path(corpora))
    sketch = open_bundle(model.path).card["data"]["fingerprints"]["source"]

    def known(texts: tuple[str, ...]) -> Overlap:
        whole = "".join(gzip.decompress((folder / text).read_bytes()).decode() for text in texts)
        return overlap(whole.split("\n"), sketch)

    training, test = known(recipe.data.source), known(recipe.data.test.source)
    assert training.seen == training.checked == sketch["lines"] > 20_000
    assert test.seen <= 0.01 * test.checked
