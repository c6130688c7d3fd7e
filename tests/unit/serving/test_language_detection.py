"""Which of a server's languages a text is in, as far as scripts tell."""

from __future__ import annotations

from headwise.serving.language_detection import detect_by_script


def test_languages_are_told_apart_by_their_scripts() -> None:
    assert detect_by_script("一只狗", ["en", "zh"])[0] == ("zh", 100.0)
    assert detect_by_script("a dog", ["en", "zh"])[0] == ("en", 100.0)
    assert detect_by_script("собака a", ["en", "ru"])[0][0] == "ru"


def test_nothing_is_guessed_between_languages_of_one_script() -> None:
    assert detect_by_script("a dog", ["en", "de"]) == []
    assert detect_by_script("a dog", ["en", "xx"]) == []


def test_a_single_language_is_always_detected() -> None:
    assert detect_by_script("a dog", ["en"]) == [("en", 100.0)]
    assert detect_by_script("123", ["xx"]) == [("xx", 0.0)]
