"""Translators of a server, found by pairs of languages or by the language of a text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwise.serving.errors import RequestError
from headwise.serving.model_index import ModelIndex
from headwise.serving.routes.translators import Translators


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
    assert TRANSLATORS.targets("en") == ["de", "zh"]


def test_a_language_is_detected_only_where_it_is_certain_and_translated() -> None:
    music, song = "I like to listen to music in the evening.", "我喜欢听音乐。"
    assert TRANSLATORS.detect(song)[0].language == "zh"
    assert TRANSLATORS.source_of([music], "de", None)[0] == "en"
    assert TRANSLATORS.source_of([song], "en", "c")[0] == "zh"
    for texts, target, problem in [
        ([music], "en", r"the text seems to be in en \(confidence \d+ of 100\), not in zh"),
        (["Ho"], "de", "the language of the text is uncertain"),
        ([music, song, music], "de", "text 2 seems to be in zh"),
        ([music], "zz", "zz is not supported"),
    ]:
        with pytest.raises(RequestError, match=problem) as caught:
            TRANSLATORS.source_of(texts, target, None)
        assert caught.value.status == 400


def test_two_spellings_of_one_language_are_not_told_apart() -> None:
    both = Translators(ModelIndex([model("a", "zh-Hans", "en"), model("b", "zh-Hant", "en")]))
    with pytest.raises(RequestError, match="uncertain"):
        both.source_of(["我喜欢听音乐。"], "en", None)
    with pytest.raises(RequestError, match="detection does not know xx, yy"):
        Translators(ModelIndex([model("a", "xx", "yy")])).detect("a")
