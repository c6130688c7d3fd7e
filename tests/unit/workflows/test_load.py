"""`headwise.load`: one call from a directory to something that works."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwise
from headwise.errors import ModelError, UsageError


def test_a_translator_translates_and_can_be_looked_into(word_model: Path) -> None:
    translator = headwise.load(word_model)
    assert isinstance(translator, headwise.Translator)
    (translation,) = translator.translate(["red dog"], beam=2)
    assert isinstance(translation, headwise.Translation)
    assert translation.text == "rot Hund"
    seen = translator.look("red dog")
    assert seen.output.labels[:2] == ["rot", "Hund"]
    assert seen.alignment().links == [(0, 0), (1, 1)]


def test_a_forced_target_is_looked_at_instead(word_model: Path, tmp_path: Path) -> None:
    translator = headwise.load(str(word_model))
    assert isinstance(translator, headwise.Translator)
    seen = translator.look("red dog", target="rot Katze Hund")
    assert seen.output.labels[:3] == ["rot", "Katze", "Hund"]
    seen.save(tmp_path / "attention.html")
    assert "Katze" in (tmp_path / "attention.html").read_text(encoding="utf-8")


def test_a_language_model_writes_and_can_be_looked_into(language_model: Path) -> None:
    generator = headwise.load(language_model)
    assert isinstance(generator, headwise.Generator)
    (written,) = generator.generate("the", max_tokens=5, seed=1)
    assert isinstance(written, headwise.Generation)
    assert len(written.ids) == 5
    assert repr(written) == f"Generation({written.text!r}, 5 tokens, stopped='length')"
    assert repr(generator) == f"Generator({str(language_model)!r}, lm, context of 16 tokens)"
    assert "dog" in "".join(generator.look("the dog").output.labels)
    with pytest.raises(UsageError, match="at most 16 at once"):
        generator.look("the dog " * 10)


def test_options_that_a_model_does_not_have_are_refused(word_model: Path) -> None:
    with pytest.raises(UsageError, match=r"^unknown precision 'int3'; there are float32, int8$"):
        headwise.load(word_model, precision="int3")
    with pytest.raises(UsageError, match=r"^load has no option 'presicion' for this model; there are precision, "):
        headwise.load(word_model, presicion="int8")
    with pytest.raises(UsageError, match=r"^unknown engine 'fast'; choose one of auto, torch, ctranslate2$"):
        headwise.load(word_model, engine="fast")


def test_engine_and_precision_can_be_asked_for_and_are_shown(word_model: Path) -> None:
    fast = headwise.load(word_model, engine="ctranslate2", precision="float32")
    assert (fast.engine.name, fast.translate("red dog").text) == ("ctranslate2", "rot Hund")
    assert "engine='torch'" in repr(headwise.load(word_model, engine="torch"))


def test_a_missing_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^no model: .*none is not there; give a model directory"):
        headwise.load(tmp_path / "none")
