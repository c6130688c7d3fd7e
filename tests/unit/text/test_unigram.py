from __future__ import annotations

import math

from headwise.text.unigram import train

WORDS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
ALPHABET = sorted(set("".join(WORDS)))


def test_pieces_are_probabilities_of_characters_and_of_what_occurs_often() -> None:
    pieces = train(WORDS, ALPHABET, wanted=len(ALPHABET) + 4, longest=5)
    found = dict(pieces)
    assert set(ALPHABET) <= set(found)
    assert len(found) == len(pieces) == len(ALPHABET) + 4
    assert all(len(piece) <= 5 for piece in found)
    assert {"low", "est"} & {piece for piece in found if len(piece) > 1} or any("est" in piece for piece in found)
    assert sum(math.exp(score) for score in found.values()) <= 1 + 1e-6
    assert [score for _, score in pieces] == sorted(found.values(), reverse=True)


def test_the_same_words_give_the_same_pieces_in_any_order() -> None:
    backwards = dict(reversed(WORDS.items()))
    assert train(WORDS, ALPHABET, 14, 5) == train(backwards, ALPHABET, 14, 5)


def test_there_are_fewer_where_too_little_occurs_twice() -> None:
    assert {piece for piece, _ in train({"ab": 1}, ["a", "b"], 50, 8)} == {"a", "b"}
