"""Looking up words gives the same ids as encoding the whole text with the library, for any text."""

from __future__ import annotations

from functools import cache

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, pre_tokenizers

from headwise.config import schema
from headwise.errors import DataError
from headwise.text import word_cache
from headwise.text.tokenizer import Tokenizer
from headwise.text.vocabulary import RESERVED
from headwise.text.word_cache import WordCache, splits_at_spaces

TEXTS = [f"der alte Hund sieht {place} kleine Vögel, und die Straße ist grün." for place in range(60)]
CHARACTERS = st.characters(exclude_categories=["Cs"])
# Spaces next to everything that a normalisation or a character class could combine them with.
ODD = st.sampled_from(["  ", "\u0301", "´", "ﷺ", "\u00a0", "\u3000", "\t", "12 3", "x" * 40, "漢字", "e\u0301", "</s>"])
ANY_TEXT = st.lists(st.one_of(st.just(" "), st.sampled_from(TEXTS[0].split()), ODD, st.text(CHARACTERS))).map("".join)


@cache
def trained(kind: str, normalisation: str) -> Tokenizer:
    return Tokenizer.train(
        TEXTS, schema.Tokenizer.model_validate({"kind": kind, "size": 300, "normalisation": normalisation})
    )


@pytest.mark.parametrize("normalisation", ["none", "nfc", "nfkc"])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@settings(max_examples=150, deadline=None)
@given(texts=st.lists(ANY_TEXT, max_size=4))
def test_ids_and_text_are_those_of_the_library(kind: str, normalisation: str, texts: list[str]) -> None:
    tokenizer = trained(kind, normalisation)
    library = tokenizer._inner
    assert splits_at_spaces(library)
    known = WordCache(library, tokenizer.vocabulary)
    ids = [library.encode(text, add_special_tokens=False).ids for text in texts]
    assert known.encode(texts) == ids
    assert known.encode(texts) == ids  # and when all words are known
    for each in ids:
        text = known.decode(each)
        assert text is None if min(each, default=RESERVED) < RESERVED else text == library.decode(each)


def test_many_new_words_at_once_have_the_same_ids_as_one_by_one() -> None:
    tokenizer = trained("unigram", "nfkc")
    texts = [" ".join(f"Hund{number}ﬁ" for number in range(first, first + 100)) for first in (0, 100)]
    together = WordCache(tokenizer._inner, tokenizer.vocabulary).encode(texts)
    one_by_one = WordCache(tokenizer._inner, tokenizer.vocabulary)
    for word in " ".join(texts).split():
        one_by_one.encode([word])
    assert one_by_one.encode(texts) == together
    assert together == [tokenizer._inner.encode(text, add_special_tokens=False).ids for text in texts]


def test_special_tokens_bytes_and_ids_beyond_the_vocabulary_are_left_to_the_library() -> None:
    tokenizer = trained("bpe", "nfc")
    known = WordCache(tokenizer._inner, tokenizer.vocabulary)
    assert [known.decode([number]) for number in (0, 3, RESERVED - 1, tokenizer.size)] == [None] * 4
    assert known.decode([]) == ""


def test_long_words_are_not_cached_and_a_full_cache_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = trained("bpe", "nfc")
    known = WordCache(tokenizer._inner, tokenizer.vocabulary)
    long = "Hund" * 20
    before = known.encode([f"der {long} Hund", long])
    assert set(known._known) == {"", "der", "Hund"}
    monkeypatch.setattr(word_cache, "_MAX_WORDS", 2)
    assert known.encode([f"der {long} Hund", long]) == before
    assert known.encode([""]) == [[]]
    assert set(known._known) == {""}


def test_tokenizers_that_split_differently_are_left_to_the_library() -> None:
    other = tokenizers.Tokenizer.from_str(trained("bpe", "nfc").json)
    other.add_tokens([AddedToken("der Hund")])  # reaches over a space
    assert not splits_at_spaces(other)
    bare = tokenizers.Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.Whitespace()
    assert not splits_at_spaces(bare)
    for kind in ("word", "char", "byte"):
        assert not splits_at_spaces(trained(kind, "nfc")._inner)


@pytest.mark.parametrize("thing", [None, 3, b"Hund", ["Hund"], "half \ud800"])
def test_input_that_is_not_text_is_refused(thing: object) -> None:
    with pytest.raises(DataError):
        trained("bpe", "nfc").encode_batch(["Hund", thing])  # type: ignore[list-item]
