"""Which of a server's languages a text is in."""

from __future__ import annotations

import gzip
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Barrier

import pytest

from headwise.serving import language_detection
from headwise.serving.language_detection import LEAST_CONFIDENCE, detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("A man is riding a bicycle.", "en"),
        ("Ein Mann fährt Fahrrad.", "de"),
        ("Un homme fait du vélo dans la rue.", "fr"),
        ("Muž jede na kole po ulici.", "cs"),
        ("一个男人在骑自行车。", "zh"),
    ],
)
def test_a_caption_is_detected_among_all_languages_and_among_two(text: str, language: str) -> None:
    for languages in (["en", "de", "fr", "cs", "zh"], ["en" if language != "en" else "fr", language]):
        found = detect_language(text, languages)
        assert found[0].language == language
        assert found[0].confidence >= LEAST_CONFIDENCE
        assert [one.confidence for one in found] == sorted((one.confidence for one in found), reverse=True)


def test_a_language_that_is_not_served_gives_low_confidences() -> None:
    for text in ("Een hond loopt over straat.", "Un homme fait du vélo dans la rue.", "Собака бежит по улице."):
        assert detect_language(text, ["en", "de"])[0].confidence < LEAST_CONFIDENCE


def test_codes_keep_their_spelling_and_unknown_ones_are_left_out() -> None:
    assert detect_language("一个男人在骑自行车。", ["zh-Hans", "en_GB", "xx"])[0].language == "zh-Hans"
    assert detect_language("A dog runs.", ["xx"]) == []


@pytest.mark.skipif(not os.environ.get("HEADWISE_DATA"), reason="no corpora: set HEADWISE_DATA to their folder")
@pytest.mark.parametrize("language", ["en", "de", "fr", "cs"])
def test_captions_are_never_taken_for_another_language(language: str) -> None:
    with gzip.open(Path(os.environ["HEADWISE_DATA"]) / f"multi30k/val.{language}.gz", "rt", encoding="utf-8") as stream:
        captions = [line.strip() for line, _ in zip(stream, range(300), strict=False)]
    found = [detect_language(caption, ["en", "de", "fr", "cs"])[0] for caption in captions]
    certain = [one for one in found if one.confidence >= LEAST_CONFIDENCE]
    assert {one.language for one in certain} == {language}
    assert len(certain) >= 0.97 * len(found)


def test_many_first_requests_load_the_detector_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, together, real = [], Barrier(4), language_detection._identifier()

    @cache
    def load() -> object:
        loaded.append(1)
        return real

    def detect(_: int) -> str:
        together.wait()
        return detect_language("A dog runs.", ["en", "de"])[0].language

    monkeypatch.setattr(language_detection, "_identifier", load)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(detect, range(4))) == ["en"] * 4
    assert loaded == [1]
