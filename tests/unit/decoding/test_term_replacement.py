"""A glossary's term takes the place of the word that translated its source term, and joins nothing."""

from __future__ import annotations

import numpy as np
import pytest

from headwise.decoding.options import Edges, Request, RequiredPhrase
from headwise.decoding.term_replacement import with_terms, word_for, words_of
from headwise.workflows.load import load

# Made-up tokens: 10 " a", 11 " do", 12 "g", 13 " runs", 14 ".", 20 " hou", 21 "nd", 22 "hou" without a space.
EDGES = Edges(continues=frozenset({12, 21, 22}), unfinished=frozenset({10, 11, 12, 13, 20, 21, 22}))
SENTENCE = (10, 11, 12, 13, 14)
# Un chien court : the article looks at its noun, too.
ATTENTION = np.array([[0.4, 0.5, 0.1], [0.1, 0.8, 0.1], [0.1, 0.6, 0.3], [0.0, 0.1, 0.9], [0.4, 0.2, 0.4]], "float32")


def hound(*source: tuple[int, int]) -> Request:
    return Request((), (RequiredPhrase(((20, 21), (22, 21)), translates=source),), EDGES)


def test_words_consist_of_the_tokens_that_join() -> None:
    assert words_of(SENTENCE, EDGES) == [range(1), range(1, 3), range(3, 4), range(4, 5)]
    assert words_of((), EDGES) == []


def test_the_word_that_looked_at_the_source_term_is_replaced_and_not_its_article() -> None:
    words = words_of(SENTENCE, EDGES)
    assert word_for((1, 2), words, ATTENTION) == range(1, 3)
    assert with_terms(SENTENCE, hound((1, 2)), ATTENTION) == (10, 20, 21, 13, 14)


def test_a_sentence_that_has_the_term_already_is_left_alone() -> None:
    already = (10, 20, 21, 13, 14)
    assert with_terms(already, hound((1, 2)), ATTENTION) == already


def test_there_is_no_place_for_a_term_that_nothing_looked_at_or_for_two_terms_at_once() -> None:
    assert with_terms(SENTENCE, hound((1, 2)), 0.1 * ATTENTION) is None
    assert with_terms((), hound((1, 2)), np.zeros((0, 3), "float32")) is None
    other = RequiredPhrase(((30,),), translates=((1, 2),))
    two = Request((), (*hound((1, 2)).phrases, other), EDGES)
    assert with_terms(SENTENCE, two, ATTENTION) is None


def test_what_else_is_required_must_survive() -> None:
    kept = Request((), (*hound((1, 2)).phrases, RequiredPhrase(((11, 12),))), EDGES)
    assert with_terms(SENTENCE, kept, ATTENTION) is None


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_a_shipped_model_writes_the_term_instead_of_its_translation(engine: str) -> None:
    translator = load("multi30k-de-en", engine=engine)
    texts = ["Ein Hund läuft am Strand.", "Ein Mann und eine Frau sitzen auf einer Bank.", "Ein Wachhund-Hund bellt."]
    plain = [one.text for one in translator.translate(texts)]
    found = translator.translate(texts, glossary={"Hund": "hound", "Frau": "lady"})
    assert "dog" in plain[0]
    assert "woman" in plain[1]
    assert found[0].text == plain[0].replace("dog", "hound")
    assert found[1].text == plain[1].replace("woman", "lady")
    assert "hound" in found[2].text  # a hyphen ends a word
    assert all(np.isfinite(one.score) for one in found)
