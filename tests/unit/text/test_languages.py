"""Language codes in any common spelling mean the same language, with its name and its spacing."""

from __future__ import annotations

import pytest

from headwise.text.languages import NAMES, WITHOUT_SPACES, base_language, name_of, uses_spaces
from headwise.text.scripts import LANGUAGE_SCRIPTS, SCRIPTS, SCRIPTS_WITHOUT_SPACES, is_spaceless, scripts_of


@pytest.mark.parametrize("code", ["zh", "ZH", "zh-CN", "zh_CN", "zh-Hans", "zh-Hant-TW", "ZH_hans_cn"])
def test_every_spelling_of_a_code_means_the_same_language(code: str) -> None:
    assert base_language(code) == "zh"
    assert name_of(code) == "Chinese"
    assert scripts_of(code) == ("Hani",)
    assert not uses_spaces(code)


def test_three_letter_codes_stay_as_they_are() -> None:
    assert (base_language("yue-HK"), name_of("yue-HK")) == ("yue", "Cantonese")


def test_an_unknown_language_keeps_its_code_as_name_and_its_spaces() -> None:
    assert name_of("tlh-Latn") == "tlh-Latn"
    assert uses_spaces("tlh")
    assert uses_spaces("")


def test_languages_without_spaces_are_those_written_only_in_scripts_without_spaces() -> None:
    written = {code for code, scripts in LANGUAGE_SCRIPTS.items() if set(scripts) <= set(SCRIPTS_WITHOUT_SPACES)}
    assert written == WITHOUT_SPACES
    assert uses_spaces("ko")  # Hangul has spaces, although Korean may also use Chinese characters
    assert set(SCRIPTS_WITHOUT_SPACES) <= set(SCRIPTS)


@pytest.mark.parametrize(
    ("character", "spaceless"), [("狗", True), ("か", True), ("ก", True), ("개", False), ("a", False)]
)
def test_a_character_tells_whether_its_script_has_spaces(character: str, spaceless: bool) -> None:
    assert is_spaceless(character) is spaceless


def test_names_are_listed_by_base_language() -> None:
    assert all(base_language(code) == code for code in NAMES)
