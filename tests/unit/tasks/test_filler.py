from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headwise
from headwise.tasks.filler import Filler


def test_load_gives_a_filler_whose_candidates_are_ranked(filler_model: Path) -> None:
    filler = headwise.load(filler_model)
    assert isinstance(filler, Filler)
    assert isinstance(filler, headwise.Filler)
    (filled,) = filler.fill(["red [MASK] green white"], top=4)
    chances = [candidate.probability for candidate in filled.gaps[0]]
    assert len(chances) == 4
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) <= 1
    assert filled.text == filled.gaps[0][0].filled == f"red {filled.gaps[0][0].text} green white"


def test_one_text_is_filled_to_one_and_objects_print_usefully(filler_model: Path) -> None:
    filler = headwise.load(filler_model)
    filled = filler.fill("red [MASK] green white", top=2)
    assert filled.text == filler.fill(["red [MASK] green white"], top=2)[0].text == str(filled)
    assert repr(filled).startswith(f"Filled({filled.text!r}, {filled.gaps[0][0].text!r} 0.")
    assert repr(filler).startswith("Filler(")


def test_special_tokens_are_no_candidates_and_all_others_sum_to_one(filler_model: Path) -> None:
    filler = headwise.load(filler_model)
    (filled,) = filler.fill(["red [MASK] green"], top=1000)
    texts = [candidate.text for candidate in filled.gaps[0]]
    assert len(texts) == filler.tokenizer.size - 5
    assert not any(text.startswith("<") for text in texts)
    assert sum(candidate.probability for candidate in filled.gaps[0]) == pytest.approx(1)


def test_texts_together_are_filled_as_they_are_alone(filler_model: Path) -> None:
    filler = headwise.load(filler_model)
    texts = ["red [MASK] green white", "[MASK] cat horse", "one two three [MASK] five six"]
    for text, filled in zip(texts, filler.fill(texts), strict=True):
        (alone,) = filler.fill([text])
        assert alone.text == filled.text
        assert np.allclose([c.probability for c in alone.gaps[0]], [c.probability for c in filled.gaps[0]], atol=1e-5)


def test_pieces_of_a_word_join_it() -> None:
    from headwise.config import schema
    from headwise.text.tokenizer import Tokenizer
    from headwise.text.vocabulary import MASK

    tokenizer = Tokenizer.train(["walking walked talking"] * 9, schema.Tokenizer(kind="bpe", size=280), (MASK,))
    pieces = {piece: number for number, piece in enumerate(tokenizer.vocabulary)}
    rest = next(number for piece, number in pieces.items() if piece[0].isalpha() and len(piece) == 2)
    whole = next(number for piece, number in pieces.items() if piece.startswith(" ") and len(piece) > 2)
    filler = Filler.__new__(Filler)
    filler.tokenizer = tokenizer
    assert filler._joined("he is walk [MASK].", [rest]) == f"he is walk{tokenizer.vocabulary[rest]}."
    assert filler._joined("he is [MASK].", [whole]) == f"he is{tokenizer.vocabulary[whole]}."
