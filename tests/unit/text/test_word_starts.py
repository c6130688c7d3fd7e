from __future__ import annotations

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from headwise.config import schema
from headwise.text.tokenizer import Tokenizer
from headwise.text.word_starts import word_starts


def words(tokenizer: Tokenizer, text: str) -> list[str]:
    ids = tokenizer.encode(text)
    starts, found = word_starts(tokenizer), list[str]()
    for number, piece in zip(ids, tokenizer.pieces(ids), strict=True):
        if starts[number] or not found:
            found.append("")
        found[-1] += piece
    return [word.replace("▁", "").replace("##", "") for word in found]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_pieces_of_one_word_belong_together(kind: str) -> None:
    settings = schema.Tokenizer(kind=kind, size=290)  # type: ignore[arg-type]
    tokenizer = Tokenizer.train(["walking talking walked talked, and walks"] * 9, settings)
    assert words(tokenizer, "walking, talked") == ["walking", ",", "talked"]


def test_a_character_of_a_script_without_spaces_is_a_word() -> None:
    tokenizer = Tokenizer.train(["我们住在酒店里"] * 9, schema.Tokenizer(kind="char", size=290))
    assert words(tokenizer, "我们住") == ["我", "们", "住"]


def test_wordpiece_marks_what_continues_a_word() -> None:
    vocab = {"<pad>": 0, "<unk>": 1, "<s>": 2, "</s>": 3, "walk": 4, "##ing": 5, "dog": 6}
    inner = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    assert words(Tokenizer(inner), "walking dog walk") == ["walking", "dog", "walk"]


def test_words_are_words() -> None:
    tokenizer = Tokenizer.train(["a b c"] * 3, schema.Tokenizer(kind="word", size=20))
    assert word_starts(tokenizer).all()
