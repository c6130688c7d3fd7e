from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_tables import WORDS

import headwise
from headwise.tasks.classifier import Classification, Classifier


def test_load_gives_a_classifier_whose_probabilities_are_sorted_and_sum_to_one(classifier_model: Path) -> None:
    classifier = headwise.load(classifier_model, engine="torch")
    assert isinstance(classifier, Classifier)
    assert isinstance(classifier, headwise.Classifier)
    (answer,) = classifier.classify(["dog cat dog"])
    assert isinstance(answer, Classification)
    assert (answer.label, answer.probability) == next(iter(answer.probabilities.items()))
    assert set(answer.probabilities) == set(classifier.labels) == set(WORDS)
    assert list(answer.probabilities.values()) == sorted(answer.probabilities.values(), reverse=True)
    assert sum(answer.probabilities.values()) == pytest.approx(1)


def test_one_text_has_one_answer_and_objects_print_usefully(classifier_model: Path) -> None:
    classifier = headwise.load(classifier_model, engine="torch")
    answer = classifier.classify("dog cat dog")
    assert answer == classifier.classify(["dog cat dog"])[0]
    assert (str(answer), repr(answer)[:17]) == (answer.label, "Classification('a")
    assert repr(classifier) == f"Classifier({str(classifier_model)!r}, 3 labels, engine='torch')"


def test_nothing_is_classified_as_nothing(classifier_model: Path) -> None:
    classifier = headwise.load(classifier_model, engine="torch")
    assert classifier.classify([]) == []
    assert classifier.logits([]).shape == (0, 3)


def test_the_temperature_of_the_card_changes_probabilities_and_no_answer(classifier_model: Path) -> None:
    classifier = headwise.load(classifier_model, engine="torch")
    assert classifier.temperature == classifier.bundle.card["temperature"] > 0
    texts = ["dog cat red", "one two red", "red blue one"]
    before = classifier.classify(texts)
    classifier.temperature *= 4
    after = classifier.classify(texts)
    assert [a.label for a in before] == [a.label for a in after]
    assert all(a.probability > b.probability for a, b in zip(before, after, strict=True))
    assert np.allclose([a.probability for a in classifier.classify(texts)], [a.probability for a in after])
