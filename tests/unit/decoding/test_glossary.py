from __future__ import annotations

import pytest

from headwise.config import schema
from headwise.decoding.glossary import PhraseMaker, Term, glossary_terms, protected_spans
from headwise.errors import UsageError
from headwise.text.tokenizer import Tokenizer

TEXTS = ["The cat sees the dog.", "Die Katze sieht den Hund.", "{name} has 12 cats.", "猫 和 狗 在 家 里"] * 3


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("Hello {name}, you have {count} mails.", ["{name}", "{count}"]),
        ("Use {{ignored}} and ${HOME} or %s and %(n)d", ["{{ignored}}", "${HOME}", "%s", "%(n)d"]),
        ('<b>Bold</b> and <a href="x y">link</a><br/>', ["<b>", "</b>", '<a href="x y">', "</a>", "<br/>"]),
        ("See https://example.org/a_b?c=d#e.", ["https://example.org/a_b?c=d#e"]),
        ("(www.example.org) me@example.org", ["www.example.org", "me@example.org"]),
        ("3 dogs, 1,000.50 cats, 50%, 12:30, -4", ["3", "1,000.50", "50%", "12:30", "-4"]),
        ("3 and 3 again", ["3", "3"]),
        ("AT&amp;T, B2B and x1", ["&amp;"]),
        ("nothing here", []),
    ],
)
def test_spans_that_must_survive_are_found(text: str, spans: list[str]) -> None:
    assert [span.text for span in protected_spans(text)] == spans


def test_spans_keep_their_distance_and_tags_their_order() -> None:
    assert protected_spans("{name} sees <b>hats</b>, 3km") == [
        Term("{name}", apart=True, whole=True),
        Term("<b>", apart=True, whole=False, ordered=True),
        Term("</b>", apart=False, whole=True, ordered=True),
    ]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("A dog barks.", ["Hund"]),
        ("Dog!", ["Hund"]),
        ("Dogs bark.", []),
        ("A hot dog.", ["Wiener"]),
        ("A dog and a hot dog and a dog.", ["Wiener", "Hund"]),
        ("The US dollar; join us", ["USA"]),
        ("我有猫。", ["cat"]),
    ],
)
def test_glossary_terms_match_whole_words_and_the_longest_term(text: str, terms: list[str]) -> None:
    glossary = {"dog": "Hund", "hot dog": "Wiener", "US": "USA", "猫": "cat"}
    assert [term.text for term in glossary_terms(text, glossary)] == terms


def test_an_empty_glossary_term_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match="empty term"):
        glossary_terms("text", {"dog": " "})


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "byte"])
@pytest.mark.parametrize("term", ["Katze", "{name}", "12", "Übergröße", "猫", "https://a.b/c?d=e", "Zürich-West"])
def test_every_spelling_of_a_term_reads_as_the_term(kind: str, term: str) -> None:
    tokenizer = Tokenizer.train(TEXTS, schema.Tokenizer(kind=kind, size=320))  # type: ignore[arg-type]
    maker = PhraseMaker(tokenizer)
    phrase = maker.phrase(Term(term))
    start = tokenizer.encode("x")
    for spelling in phrase.spellings:
        assert tokenizer.decode([*start, *spelling]).removeprefix("x").strip() == term
    # One of them can stand right after a word, and if it is to stand apart it is the only one.
    free = [spelling for spelling in phrase.spellings if spelling[0] not in maker.edges.continues]
    assert free
    (apart,) = maker.phrase(Term(term, apart=True)).spellings
    assert tokenizer.decode([*start, *apart]) == f"x {term}"


def test_a_term_that_the_vocabulary_cannot_write_is_one_clear_line() -> None:
    tokenizer = Tokenizer.train(TEXTS, schema.Tokenizer(kind="word", size=50))
    assert PhraseMaker(tokenizer).phrase(Term("Katze sieht")).spellings == (tuple(tokenizer.encode("Katze sieht")),)
    with pytest.raises(UsageError, match="'Elefant'"):
        PhraseMaker(tokenizer).phrase(Term("Elefant"))


def test_a_hyphen_ends_a_word_and_an_inflected_form_is_another_word() -> None:
    glossary = {"dog": "Hund", "well-known": "bekannt"}
    assert [term.text for term in glossary_terms("a dog-friendly, well-known inn", glossary)] == ["bekannt", "Hund"]
    assert glossary_terms("dogs and doghouses", glossary) == []
