from __future__ import annotations

from pathlib import Path

import pytest

from headwise.serving.errors import RequestError
from headwise.serving.routes.translation_cost import TranslationSettings, plan_translation
from headwise.tasks.translate import FAST_COST, ServedTranslator
from headwise.workflows.translate import open_translator


@pytest.fixture(scope="module")
def served(word_model: Path) -> ServedTranslator:
    return ServedTranslator("words", open_translator(word_model))


@pytest.fixture(scope="module")
def only_fast(word_model: Path) -> ServedTranslator:
    return ServedTranslator("words", open_translator(word_model, engine="ctranslate2"))


def test_only_what_must_contain_certain_words_is_constrained() -> None:
    assert not TranslationSettings(beam=3, alternatives=2).constrained
    assert TranslationSettings(protect=True).constrained
    assert TranslationSettings(glossary=(("a", "b"),)).constrained
    assert not TranslationSettings(glossary=(("a", "b"),), protect=True).unconstrained.constrained


def test_a_sentence_costs_its_tokens_times_the_beam(served: ServedTranslator) -> None:
    plan = plan_translation(served, ["red dog\none", ""], TranslationSettings(beam=4))
    assert [(one.text, one.cost, one.slow) for one in plan.planned] == [
        ("red dog", 3 * 4, False),
        ("one", 2 * 4, False),
    ]
    assert [len(sentences) for sentences in plan.sentences] == [2, 0]
    assert plan.size(0) == (3 + plan.max_extra) * 4


def test_a_sentence_that_takes_the_fast_engine_too_long_goes_to_torch(served: ServedTranslator) -> None:
    longest = FAST_COST // 6 - 1  # words that a beam of 5 allows, with the end of sentence
    plan = plan_translation(served, ["dog " * longest, "dog " * (longest + 1)], TranslationSettings(beam=5))
    assert [one.slow for one in plan.planned] == [False, True]


def test_only_sentences_with_required_phrases_need_torch_for_them(served: ServedTranslator) -> None:
    settings = TranslationSettings(beam=2, glossary=(("dog", "Vogel"),))
    plan = plan_translation(served, ["red dog\nblue cat"], settings)
    assert [(one.rows, one.tokens, one.slow) for one in plan.planned] == [(10, 3 + len("Vogel"), True), (2, 3, False)]


def test_where_there_is_no_torch_long_sentences_are_cut(only_fast: ServedTranslator) -> None:
    plan = plan_translation(only_fast, ["dog " * 1000], TranslationSettings(beam=9))
    assert not any(one.slow for one in plan.planned)
    assert max(one.tokens for one in plan.planned) <= FAST_COST / 10
    assert sum(one.tokens - 1 for one in plan.planned) == 1000


@pytest.mark.parametrize(
    ("text", "settings", "part"),
    [
        ("%s " * 3000, TranslationSettings(beam=5, protect=True), "but a request may cost 60,000"),
        ("a " * 5000, TranslationSettings(beam=10, glossary=(("a", "b"),)), "× up to 18 hypotheses"),
        ("a " * 5000, TranslationSettings(beam=64), "with required phrases or long sentences: send less at once"),
        ("a\n" * 5000, TranslationSettings(beam=20), "but a request may cost 150,000: send less"),
    ],
)
def test_what_costs_too_much_is_refused_before_it_begins(
    served: ServedTranslator, text: str, settings: TranslationSettings, part: str
) -> None:
    with pytest.raises(RequestError) as caught:
        plan_translation(served, [text], settings)
    assert caught.value.status == 413
    assert part in caught.value.message


def test_ten_thousand_characters_of_ordinary_text_are_not_too_much(served: ServedTranslator) -> None:
    text = "The red dog saw 3 blue cats near the old house today.\n" * 180
    for settings in (TranslationSettings(beam=10), TranslationSettings(beam=5, protect=True)):
        assert len(plan_translation(served, [text], settings).planned) == 180
