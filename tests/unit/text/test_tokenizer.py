"""Tokenizers: text is restored, special tokens cannot be forged, files are portable, errors are one clear line."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.config import schema
from headwise.errors import DataError, ModelError, RecipeError, VocabularyTooLarge, WorkFailed
from headwise.text.tokenizer import Tokenizer, TokenizerPair

KINDS = ("bpe", "unigram", "word", "char", "byte")
EXACT = ("bpe", "unigram", "char", "byte")
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FORGED = ("<pad>", "<unk>", "<s>", "</s>", "<0x41>", " </s> ", "a</s>b", "<s> <s>")


def corpus(lines: int = 300) -> list[str]:
    chance = random.Random(7)
    words = [
        "the",
        "old",
        "dog",
        "sees",
        "a",
        "small",
        "bird",
        "under",
        "the",
        "tree",
        "while",
        "Käthe",
        "läuft",
        "über",
        "eine",
        "grüne",
        "Straße",
        ",",
        "12",
        "34",
        ".",
    ]
    return [" ".join(chance.choices(words, k=chance.randint(3, 12))) for _ in range(lines)]


@cache
def trained(kind: str, normalisation: str = "nfc") -> Tokenizer:
    size = 330 if kind in ("bpe", "unigram") else 1000
    return Tokenizer.train(corpus(), make(kind=kind, size=size, normalisation=normalisation))


def make(**values: object) -> schema.Tokenizer:
    return schema.Tokenizer.model_validate(values)


@pytest.mark.parametrize("normalisation", ["none", "nfc", "nfkc"])
@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=60, deadline=None)
@given(text=ANY_TEXT)
def test_any_text_is_restored_after_normalisation(kind: str, normalisation: str, text: str) -> None:
    tokenizer = trained(kind, normalisation)
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalise(text)


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize(
    "text", ["", " ", "  two  spaces  ", "▁low line", "\t\r\n", "\x00", "a\u2028b\u0085c", "🧑‍🚀é", *FORGED]
)
def test_awkward_text_is_restored(kind: str, text: str) -> None:
    tokenizer = trained(kind, "none")
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_special_ids_are_always_the_first_four(kind: str) -> None:
    tokenizer = trained(kind)
    assert (tokenizer.pad, tokenizer.unk, tokenizer.bos, tokenizer.eos) == (0, 1, 2, 3)
    assert tokenizer.vocabulary[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert len(tokenizer.vocabulary) == tokenizer.size


@pytest.mark.parametrize("kind", KINDS)
def test_text_that_spells_a_special_token_never_becomes_one_even_after_save_and_load(kind: str, tmp_path: Path) -> None:
    trained(kind).save(tmp_path / "t.json")
    for tokenizer in (trained(kind), Tokenizer.load(tmp_path / "t.json")):
        for text in FORGED:
            ids = tokenizer.encode(text)
            assert not {0, 2, 3} & set(ids)
            assert kind == "word" or 1 not in ids


@pytest.mark.parametrize("kind", KINDS)
def test_the_library_itself_loads_the_file_and_gives_the_same_ids(kind: str, tmp_path: Path) -> None:
    trained(kind).save(tmp_path / "t.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    loaded = Tokenizer.load(tmp_path / "t.json")
    assert loaded == trained(kind)
    assert loaded.kind == kind
    for text in ("Käthe sees 12 dogs", "日本", "<s> x"):
        assert theirs.encode(text).ids == loaded.encode(text) == trained(kind).encode(text)


@pytest.mark.parametrize("name", ["none", "nfc", "nfkc"])
def test_the_normalisation_is_named_in_the_file(name: str, tmp_path: Path) -> None:
    trained("bpe", name).save(tmp_path / "t.json")
    loaded = Tokenizer.load(tmp_path / "t.json")
    assert loaded.normalisation == name
    assert loaded.normalise("e\u0301 ﬁ") == {"none": "e\u0301 ﬁ", "nfc": "é ﬁ", "nfkc": "é fi"}[name]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_training_in_another_process_gives_the_same_file(kind: str) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from test_tokenizer import trained; print(trained({kind!r}).fingerprint)"
    )
    printed = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(2)
    }
    assert printed == {trained(kind).fingerprint}


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_chinese_needs_no_special_setting(kind: str) -> None:
    chance = random.Random(1)
    words = ["我们", "今天", "去", "学校", "他", "喜欢", "吃", "苹果", "。"]
    texts = ["".join(chance.choices(words, k=6)) for _ in range(300)]
    tokenizer = Tokenizer.train(texts, make(kind=kind, size=300))
    assert any("学校" in piece for piece in tokenizer.vocabulary)
    assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in texts)
    assert len(tokenizer.encode(texts[0])) < len(texts[0])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_larger_than_the_corpus_allows_says_how_many_there_can_be(kind: str) -> None:
    with pytest.raises(DataError, match=r"tokenizer\.size = 20000 is more than this corpus allows") as caught:
        Tokenizer.train(corpus(40), make(kind=kind, size=20000))
    most = int(str(caught.value).rsplit(" or less", 1)[0].rsplit(" ", 1)[1])
    assert Tokenizer.train(corpus(40), make(kind=kind, size=most)).size == most


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_a_vocabulary_without_room_for_bytes_is_refused(kind: str) -> None:
    with pytest.raises(RecipeError, match="too small"):
        Tokenizer.train(corpus(), make(kind=kind, size=260))


def test_a_size_that_is_refused_is_the_one_that_was_asked_for_with_room_for_the_tokens_of_a_task() -> None:
    with pytest.raises(RecipeError, match=r"size = 120 is too small: bpe has 261 special .* set it to 301 or more"):
        Tokenizer.train(corpus(), make(kind="bpe", size=120), ("<mask>",))
    with pytest.raises(VocabularyTooLarge, match="size = 20000 is more") as caught:
        Tokenizer.train(corpus(40), make(kind="bpe", size=20000), ("<mask>",))
    most = caught.value.most
    assert Tokenizer.train(corpus(40), make(kind="bpe", size=most), ("<mask>",)).size == most


@pytest.mark.parametrize("kind", KINDS)
def test_training_without_text_is_refused(kind: str) -> None:
    with pytest.raises(DataError, match="no text"):
        Tokenizer.train(["", "  "], make(kind=kind, size=300))


def test_the_requested_size_is_the_size() -> None:
    assert trained("bpe").size == trained("unigram").size == 330
    assert trained("byte").size == 260


def test_words_keep_the_most_frequent_and_read_others_as_unknown() -> None:
    tokenizer = Tokenizer.train(["b a a <unk> <unk> <unk>", "c b a"], make(kind="word", size=6))
    assert tokenizer.vocabulary[4:] == ["a", "b"]
    assert tokenizer.encode("a  b c <unk> </s>") == [4, 5, 1, 1, 1]
    assert tokenizer.decode([4, 5, 1]) == "a b <unk>"


def test_decoding_leaves_out_padding_begin_and_end() -> None:
    tokenizer = trained("bpe")
    ids = tokenizer.encode("the old dog")
    assert tokenizer.decode([2, *ids, 3, 0, 0]) == "the old dog"
    assert tokenizer.decode_batch([[2, *ids], [0]]) == ["the old dog", ""]


def test_ids_in_any_container_are_decoded() -> None:
    tokenizer = trained("bpe")
    ids = np.array([2, *tokenizer.encode("the old dog é"), 3])
    for some in (ids, ids.tolist(), tuple(ids), tuple(ids.tolist()), iter(ids), tuple(ids[1:-1])):
        assert tokenizer.decode(some) == "the old dog é"


def test_pieces_show_spaces_and_bytes() -> None:
    tokenizer = trained("bpe")
    assert tokenizer.pieces(tokenizer.encode("é")) == ["▁", "<0xC3>", "<0xA9>"]
    assert "▁the" in tokenizer.pieces(tokenizer.encode("the"))


def test_half_a_surrogate_pair_is_refused_in_one_line() -> None:
    with pytest.raises(DataError, match="surrogate"):
        trained("bpe").encode("a\ud800b")


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff\xfe", b'{"model": {"type": "BPE"}}'])
def test_an_invalid_tokenizer_file_is_refused_by_name(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"t\.json") as caught:
        Tokenizer.load(path)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_with_other_special_tokens_is_refused(tmp_path: Path) -> None:
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "a": 2}
    tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]")).save(str(tmp_path / "t.json"))
    with pytest.raises(ModelError, match="needs '<pad>'"):
        Tokenizer.load(tmp_path / "t.json")


def test_a_file_from_elsewhere_cannot_pad_truncate_sample_or_read_special_tokens_in_text(tmp_path: Path) -> None:
    trained("bpe").save(tmp_path / "t.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    theirs.add_special_tokens(["<s>", "</s>"])
    theirs.enable_padding(length=50)
    theirs.enable_truncation(4)
    theirs.model.dropout = 0.9
    theirs.save(str(tmp_path / "t.json"))
    loaded = Tokenizer.load(tmp_path / "t.json")
    for text in ("the old dog sees a small bird", "</s>"):
        assert loaded.encode(text) == trained("bpe").encode(text)
        assert loaded.decode(loaded.encode(text)) == text


def test_a_full_disk_leaves_the_old_file_and_no_part_of_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"
    trained("byte").save(path)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WorkFailed, match="No space left"):
        trained("bpe").save(path)
    assert Tokenizer.load(path) == trained("byte")
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_shared_pair_is_one_file_and_stays_shared(tmp_path: Path) -> None:
    files = TokenizerPair.one(trained("bpe")).save(tmp_path)
    loaded = TokenizerPair.load(tmp_path)
    assert [file.name for file in files] == ["tokenizer.json"]
    assert loaded.shared
    assert loaded.source == trained("bpe")


def test_two_tokenizers_are_two_files(tmp_path: Path) -> None:
    TokenizerPair(trained("bpe"), trained("char")).save(tmp_path)
    loaded = TokenizerPair.load(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["source.tokenizer.json", "target.tokenizer.json"]
    assert not loaded.shared
    assert (loaded.source.kind, loaded.target.kind) == ("bpe", "char")


def test_a_directory_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        TokenizerPair.load(tmp_path)
