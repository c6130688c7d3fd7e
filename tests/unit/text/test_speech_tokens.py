"""What preprocessing.json of a speech model says, and what a transcript begins with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwise.errors import ModelError, UsageError
from headwise.text.speech_tokens import SpeechTokens, preprocessing, read_speech_tokens

PLAIN = SpeechTokens()
ENGLISH = SpeechTokens(no_timestamps=20, timestamps=21)
SEVERAL = SpeechTokens(
    languages={"en": 10, "de": 11}, tasks={"transcribe": 12, "translate": 13}, no_timestamps=20, timestamps=21,
    no_speech=14, alignment_heads=[[0, 1]],
)  # fmt: skip


def test_a_prompt_has_what_the_model_knows() -> None:
    assert PLAIN.prompt(None, "transcribe", timestamps=True) == (2,)
    assert ENGLISH.prompt("en", "transcribe", timestamps=True) == (2,)
    assert ENGLISH.prompt(None, "transcribe", timestamps=False) == (2, 20)
    assert SEVERAL.prompt("de", "translate", timestamps=False) == (2, 11, 13, 20)
    assert SEVERAL.prompt("en", "transcribe", timestamps=True) == (2, 10, 12)


def test_what_the_model_does_not_know_is_refused() -> None:
    with pytest.raises(UsageError, match="does not know the language 'fr'; it has en, de"):
        SEVERAL.prompt("fr", "transcribe", timestamps=True)
    with pytest.raises(UsageError, match="does not translate"):
        ENGLISH.prompt(None, "translate", timestamps=True)


def test_special_tokens_are_not_text() -> None:
    assert PLAIN.special(30) == {0, 1, 2, 3}
    assert SEVERAL.special(24) == {0, 1, 2, 3, 10, 11, 12, 13, 14, 20, 21, 22, 23}


@pytest.mark.parametrize("tokens", [PLAIN, ENGLISH, SEVERAL])
def test_the_file_holds_all_of_it(tokens: SpeechTokens) -> None:
    content = json.loads(json.dumps(preprocessing(80, tokens)))
    assert read_speech_tokens(content, 80, 100, Path("m")) == tokens


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"mels": 128}, "has 128 mel bins, but the model reads 80"),
        ({"kind": "raw"}, "kind"),
        ({"tokens": {"timestamps": 100}}, "names token 100, but the model has 100"),
        ({"tokens": {"timestamps": -1}}, "tokens.timestamps"),
        ({"tokens": {"suppress": "all"}}, "tokens.suppress"),
        ({"tokens": {"tasks": {"transcribe": 5}}}, "no token for the task"),
        ({"tokens": {"alignment_heads": [[1]]}}, "alignment_heads"),
        ({"code": "x"}, "code"),
    ],
)
def test_a_damaged_file_is_named(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ModelError, match=problem) as caught:
        read_speech_tokens({**preprocessing(80), **change}, 80, 100, Path("model"))
    assert str(caught.value).startswith("model: preprocessing.json")


def test_the_published_order_has_text_first_and_times_last() -> None:
    tokens = SpeechTokens(
        languages={"en": 9}, tasks={"transcribe": 7, "translate": 8}, previous=10, no_speech=11, no_timestamps=12,
        timestamps=13, suppress=[5],
    )  # fmt: skip
    assert tokens.published_order(16) == [4, 5, 6, 3, 2, 9, 7, 8, 10, 11, 12, 13, 14, 15]
    assert tokens.never() == [5, 7, 8, 9, 10, 11, 12]
    assert SpeechTokens(no_timestamps=1).published_order(6) == [4, 5, 3, 2, 1]
