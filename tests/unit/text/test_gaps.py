from __future__ import annotations

import pytest

from headwise.config import schema
from headwise.text.gaps import count_gaps, encode_with_gaps
from headwise.text.tokenizer import Tokenizer
from headwise.text.vocabulary import MASK

TEXTS = ["the capital of France is Paris.", "a dog, a cat and a bird", "the cat is in the house."] * 20


def trained(kind: str) -> Tokenizer:
    return Tokenizer.train(TEXTS, schema.Tokenizer(kind=kind, size=320), (MASK,))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "byte", "word"])
def test_the_mask_is_the_last_token_and_never_text(kind: str) -> None:
    tokenizer = trained(kind)
    mask = tokenizer.find(MASK)
    assert mask == tokenizer.size - 1
    assert tokenizer.kind == kind
    assert mask not in tokenizer.encode("a <mask> b <mask>")
    assert Tokenizer.train(TEXTS, schema.Tokenizer(kind=kind, size=320)).find(MASK) is None  # type: ignore[arg-type]


def test_a_loaded_tokenizer_has_it_still(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tokenizer = trained("bpe")
    tokenizer.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json").find(MASK) == tokenizer.size - 1


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
@pytest.mark.parametrize("text", ["the capital of France is Paris.", "a dog, a cat and a bird"])
def test_a_gap_for_a_token_leaves_the_others_as_they_are(kind: str, text: str) -> None:
    tokenizer = trained(kind)
    ids, pieces = tokenizer.encode(text), tokenizer.pieces(tokenizer.encode(text))
    mask = tokenizer.size - 1
    tried = 0
    for place, piece in enumerate(pieces):
        word = piece.removeprefix("▁")
        if kind != "word" and not piece.startswith("▁"):
            continue
        if text.split().count(word) != 1:
            continue
        gapped = " ".join("[MASK]" if one == word else one for one in text.split())
        assert encode_with_gaps(tokenizer, gapped, [mask]) == [*ids[:place], mask, *ids[place + 1 :]]
        tried += 1
    assert tried


def test_what_follows_a_gap_without_a_space_is_not_given_one() -> None:
    tokenizer = trained("bpe")
    mask = tokenizer.size - 1
    ids = encode_with_gaps(tokenizer, "the house [MASK].", [mask])
    assert ids[-2:] == [mask, tokenizer.find(".")]
    assert encode_with_gaps(tokenizer, "[MASK]", [mask]) == [mask]
    assert encode_with_gaps(tokenizer, "the <mask> is [MASK]", [7, 8]).count(7) == 1


def test_gaps_are_counted() -> None:
    assert [count_gaps(text) for text in ("none", "[MASK] and <mask>", "[MASK][MASK]")] == [0, 2, 2]


def test_characters_keep_their_spaces() -> None:
    tokenizer = trained("char")
    assert encode_with_gaps(tokenizer, "a [MASK]t", [1])[1] == tokenizer.encode(" ")[0]
