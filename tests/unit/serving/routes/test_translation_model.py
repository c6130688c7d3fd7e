from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headwise.serving.batch_queue import BatchQueue, QueueFull
from headwise.serving.limits import Limits
from headwise.serving.routes.translation_cost import TranslationSettings
from headwise.serving.routes.translation_model import TranslationModel
from headwise.tasks.translate import ServedTranslator
from headwise.workflows.translate import open_translator


def make_model(word_model: Path, queue: int = 10) -> TranslationModel:
    limits = Limits(queue=queue)
    served = ServedTranslator("words", open_translator(word_model))
    return TranslationModel(served, BatchQueue("words", 1, limits), BatchQueue("words", 1, limits))


def test_sentences_of_both_queues_come_back_in_their_order(word_model: Path) -> None:
    model = make_model(word_model)
    texts = ["red dog", "one two three", "green bird", "dog " * 150 + "\nred cat", "blue dog"]
    settings = TranslationSettings(beam=4, glossary=(("blue", "rot"),))
    found = asyncio.run(model.translate(texts, settings))
    assert [len(text.sentences) for text in found] == [1, 1, 1, 2, 1]
    assert [text.whole.text for text in found[:3]] == [one.text for one in model.served.translate(texts[:3], beam=4)]
    assert found[3].sentences[1].text == "rot Katze"
    assert "rot" in found[4].whole.text
    assert model.side_queue.used


def test_a_full_queue_is_noticed_before_a_text_is_split(word_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(word_model, queue=0)
    monkeypatch.setattr(model.served.translator, "pieces", None)
    for settings in (TranslationSettings(), TranslationSettings(protect=True)):
        with pytest.raises(QueueFull):
            asyncio.run(model.translate(["red dog" * 1000], settings))
