from __future__ import annotations

from headwise.serving.routes.translation_model import TranslationSettings


def test_required_words_make_a_translation_constrained() -> None:
    assert not TranslationSettings(beam=3, alternatives=2).constrained
    assert TranslationSettings(protect=True).constrained
    assert TranslationSettings(glossary=(("a", "b"),)).constrained
