from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.config.schema import Filters
from headwise.text.filters import REASONS, FilterCounts, line_filter, pair_filter
from headwise.text.hash_set import HashSet
from headwise.text.scripts import count_words, in_wrong_script, length, scripts_of

ALL = Filters(copies=True, duplicates=True, script=True)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("A dog runs.", "Ein Hund läuft.", None),
        ("", "Ein Hund.", "empty"),
        ("A dog.", " \t\u3000", "empty"),
        ("x" * 2001, "y" * 500, "max_characters"),
        ("A dog.", "y" * 2001, "max_characters"),
        ("A\x00dog.", "Ein Hund.", "control"),
        ("A dog.", "Ein \x1b[31mHund.", "control"),
        ("A dog.", "Ein\rHund.", "control"),
        ("A dog.", "Ein\u0085Hund.", "control"),
        ("A\tdog.", "Ein\u2028Hund\u00a0hier\u200d.", None),
        ("word " * 40, "Wort", "max_ratio"),
        ("Wort", "word " * 40, "max_ratio"),
        ("No.", "Das glaube ich eher nicht.", None),
        (" Berlin", "Berlin ", "copies"),
        ("A dog runs.", "Собака бежит.", "script"),
        ("Собака бежит.", "Ein Hund läuft.", "script"),
    ],
)
def test_each_reason_drops_what_its_name_says(source: str, target: str, reason: str | None) -> None:
    assert pair_filter(ALL, ("en", "de"))(source, target) == reason


def test_a_repeated_pair_is_dropped_but_not_one_with_another_translation() -> None:
    reason = pair_filter(ALL, ())
    pairs = [("a dog", "ein Hund"), ("a dog", "der Hund"), ("a dog", "ein Hund"), ("ein Hund", "a dog")]
    assert [reason(*pair) for pair in pairs] == [None, None, "duplicates", None]


def test_a_filter_that_is_off_drops_nothing() -> None:
    reason = pair_filter(Filters(empty=False, control=False), ("en", "de"))
    pairs = [("", "x"), ("a\x00", "b"), ("same", "same"), ("same", "same"), ("Собака бежит", "Ein Hund läuft")]
    assert [reason(*pair) for pair in pairs] == [None] * 5


def test_a_language_model_keeps_empty_and_long_lines() -> None:
    reason = line_filter(ALL, ("en",))
    texts = ["", "", "A long line. " * 1000, "nul\x00", "once", "once", "Это не по-английски"]
    assert [reason(text) for text in texts] == [None, None, None, "control", None, "duplicates", "script"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8))))
def test_lines_read_are_exactly_lines_kept_plus_dropped(pairs: list[tuple[str, str]]) -> None:
    counts, reason = FilterCounts(), pair_filter(ALL, ("en", "zh"))
    kept = 0
    for pair in pairs:
        verdict = reason(*pair)
        counts.add(verdict)
        kept += verdict is None
    assert counts.lines == len(pairs)
    assert counts.kept == kept
    assert set(counts.dropped) <= set(REASONS)


def test_every_reason_is_a_setting_of_the_recipe() -> None:
    assert set(REASONS) == set(Filters.model_fields)


def test_chinese_and_english_count_as_about_equally_long() -> None:
    english, chinese = "I don't know what you are talking about.", "我不知道你在说什么。"
    assert 0.5 < length(english) / length(chinese) < 2
    assert pair_filter(Filters(max_ratio=3.0))(english * 3, chinese * 3) is None


def test_the_quick_length_check_never_disagrees_with_the_exact_one() -> None:
    drawn = random.Random(3)
    for _ in range(3000):
        sides = ["".join(drawn.choices("ab 漢語é", k=drawn.randint(1, 120))) for _ in range(2)]
        left, right = (max(20, length(side)) for side in sides)
        expected = "max_ratio" if max(left, right) >= 4.0 * min(left, right) else None
        assert pair_filter(Filters(max_ratio=4.0, empty=False))(*sides) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [("two words", 2), ("", 0), ("zwölf Wörter", 2), ("我用Twitter。", 3), ("東京 タワー", 5), ("한국어 문장", 2)],
)
def test_words_are_counted_without_spaces_too(text: str, words: int) -> None:
    assert count_words(text) == words


@pytest.mark.parametrize(
    ("text", "language", "wrong"),
    [
        ("Ein Hund läuft über die Straße", "de", False),
        ("Đây là một câu tiếng Việt", "vi", False),
        ("Привет, как дела", "ru", False),
        ("Привет, как дела", "en", True),
        ("Hello, how are you", "ru", True),
        ("Hello, how are you", "zh", True),
        ("我今天去上海。", "zh", False),
        ("我今天去上海。", "zh_Hant", False),
        ("我今天去上海。", "ja", False),
        ("これはペンです", "zh", True),
        ("OK", "zh", False),
        ("12345 :-)", "ru", False),
        ("Привет, как дела", "sr", False),
        ("Привет, как дела", "sr-Latn", True),
        ("Hello, how are you", "xx", False),
        ("ภาษาไทยง่าย", "th", False),
        ("“Quoted” – with dashes… and €", "en", False),
    ],
)
def test_the_script_is_checked_against_the_declared_language(text: str, language: str, wrong: bool) -> None:
    assert in_wrong_script(text, scripts_of(language)) is wrong


def test_the_compact_set_remembers_exactly_what_was_added() -> None:
    seen, reference = HashSet(), set()
    drawn = random.Random(7)
    for _ in range(60_000):
        item = str(drawn.randrange(40_000))
        assert seen.add(item) == (item not in reference)
        reference.add(item)
    assert len(seen) == len(reference)


def test_the_compact_set_survives_hashes_that_crowd_at_its_end() -> None:
    class Crowded:
        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            return -1 - self.number - 1  # the highest unsigned values, all in the last slots

    seen = HashSet()
    items = [Crowded(number) for number in range(3000)]
    assert all(seen.add(item) for item in items)
    assert not any(seen.add(item) for item in items)
