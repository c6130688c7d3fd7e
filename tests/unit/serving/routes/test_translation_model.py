from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwise.serving.errors import RequestError
from headwise.serving.model_index import ModelIndex
from headwise.serving.routes.translation_model import TranslationSettings, Translators


def model(name: str, *languages: str, task: str = "translate") -> Any:
    return SimpleNamespace(facts=SimpleNamespace(name=name, kind=task, languages=languages))


MODELS = [model("a", "en", "de"), model("b", "en", "zh"), model("c", "zh", "en"), model("lm", "en", task="generate")]
TRANSLATORS = Translators(ModelIndex(MODELS))


def test_a_model_is_found_by_its_languages_or_must_fit_them() -> None:
    assert TRANSLATORS.find("en", "zh") is MODELS[1]
    assert TRANSLATORS.find("en", "de", "a") is MODELS[0]
    for name, problem in ((None, "no such pair of languages; there are en to de, en to zh, zh to en"),
                          ("c", "no such pair of languages in this model")):  # fmt: skip
        with pytest.raises(RequestError, match=problem) as caught:
            TRANSLATORS.find("de", "en", name)
        assert caught.value.status == 400
    with pytest.raises(RequestError, match="there is no such model"):
        TRANSLATORS.find("en", "de", "z")


def test_languages_are_those_of_the_translators() -> None:
    assert TRANSLATORS.sources() == ["en", "zh"]
    assert TRANSLATORS.sources("en") == ["zh"]
    assert TRANSLATORS.targets("en") == ["de", "zh"]


def test_a_language_is_detected_by_its_script_where_scripts_differ() -> None:
    assert TRANSLATORS.detect("我喜欢音乐")[0][0] == "zh"
    with pytest.raises(RequestError, match="detection is not supported between en, de"):
        TRANSLATORS.detect("music", ["en", "de"])


def test_required_words_make_a_translation_constrained() -> None:
    assert not TranslationSettings(beam=3, alternatives=2).constrained
    assert TranslationSettings(protect=True).constrained
    assert TranslationSettings(glossary=(("a", "b"),)).constrained
