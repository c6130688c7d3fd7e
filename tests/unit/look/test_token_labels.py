from __future__ import annotations

import pytest

from headwise.config import schema
from headwise.look.token_labels import Reading, label, read_tokens
from headwise.text.tokenizer import BOS, EOS, UNK, Tokenizer, TokenizerPair


def words_of(tokenizer: Tokenizer, text: str) -> list[str]:
    return Reading.of(tokenizer, tokenizer.encode(text)).words


def test_pieces_are_shown_without_the_marks_of_the_tokenizer(tokenizers: TokenizerPair) -> None:
    labels = Reading.of(tokenizers.source, tokenizers.source.encode("the street was tired")).labels
    assert "".join(labels) == "thestreetwastired"


def test_special_tokens_cannot_be_mistaken_for_text(tokenizers: TokenizerPair) -> None:
    assert Reading.of(tokenizers.source, [BOS, UNK, EOS]).labels == ["⟨start⟩", "⟨unknown⟩", "⟨end⟩"]
    typed = Reading.of(tokenizers.source, tokenizers.source.encode("</s>"))
    assert "⟨end⟩" not in typed.labels
    assert typed.words == ["</s>"]


def test_the_bytes_of_a_character_show_the_character_numbered(tokenizers: TokenizerPair) -> None:
    tokens = read_tokens(tokenizers.source, tokenizers.source.encode("€"))
    assert [token.label for token in tokens if "€" in token.label] == ["€₁", "€₂", "€₃"]
    assert words_of(tokenizers.source, "a€ b") == ["a€", "b"]


def test_a_broken_byte_is_shown_as_a_byte(tokenizers: TokenizerPair) -> None:
    euro = [
        number for number in tokenizers.source.encode("€") if tokenizers.source.pieces([number])[0].startswith("<0x")
    ]
    assert [token.label for token in read_tokens(tokenizers.source, euro[:2])] == ["<0xE2>", "<0x82>"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" ", "␣"),
        ("\n", "↵"),
        (" dog", "dog"),
        ("\u0301", "◌\u0301"),  # a combining accent without its letter
        ("e\u0301", "é"),
        ("\u202e", "U+202E"),  # would turn the writing direction of what follows
        ("\x07", "U+0007"),
        ("a\u200db", "a\u200db"),
    ],
)
def test_what_cannot_be_seen_is_made_visible(text: str, shown: str) -> None:
    assert label(text) == shown


@pytest.mark.parametrize("text", ["the animal was tired.", "  two  dogs ", "don't (really) stop", "a", ""])
@pytest.mark.parametrize("kind", ["bpe", "char", "byte", "word"])
def test_words_are_what_stands_between_spaces(kind: str, text: str) -> None:
    settings = schema.Tokenizer(kind=kind, size=300)  # type: ignore[arg-type]
    tokenizer = Tokenizer.train(["the animal was tired. two dogs", "don't (really) stop a", "aaaa bbbb"] * 5, settings)
    assert words_of(tokenizer, text) == text.split()


def test_in_a_script_without_spaces_each_token_is_a_word(tokenizers: TokenizerPair) -> None:
    ids = tokenizers.target.encode("两只狗过马路 street")
    reading = Reading.of(tokenizers.target, [*ids, EOS])
    assert reading.words[-2:] == ["street", "⟨end⟩"]
    assert "".join(reading.words[:-2]) == "两只狗过马路"
    assert len(reading.words) > 4


@pytest.mark.parametrize("kind", ["bpe", "char", "byte", "word"])
def test_the_whole_text_is_spelt_as_it_was_given(kind: str) -> None:
    tokenizer = Tokenizer.train(["two dogs"] * 300, schema.Tokenizer(kind=kind, size=270))  # type: ignore[arg-type]
    assert Reading.of(tokenizer, [BOS, *tokenizer.encode("two dogs"), EOS]).text == "two dogs"


def test_groups_hold_every_token_once_and_in_order(tokenizers: TokenizerPair) -> None:
    ids = [BOS, *tokenizers.target.encode("两只€狗 the  street \n tired "), EOS]
    groups = Reading.of(tokenizers.target, ids).groups
    assert [index for group in groups for index in group] == list(range(len(ids)))


def test_wordpiece_marks_what_continues_a_word() -> None:
    import tokenizers
    from tokenizers import models, pre_tokenizers

    pieces = ["<pad>", "<unk>", "<s>", "</s>", "walk", "##ing", "dog", ",", "我", "们"]
    inner = tokenizers.Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    read = Reading.of(Tokenizer(inner), [BOS, *Tokenizer(inner).encode("walking dog, 我 们"), EOS])
    assert read.words == ["⟨start⟩", "walking", "dog", ",", "我", "们", "⟨end⟩"]
    assert read.labels[2] == "##ing"
    assert [token.text for token in read.tokens[1:-1]] == [" walk", "ing", " dog", " ,", "我", "们"]
