from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures_published import END, byte_level_bpe
from tokenizers import models, pre_tokenizers

from headwise.errors import ModelError
from headwise.text.published import Numbering, adopt, around, is_ours, pair_ends, read_parts, release, vocabulary
from headwise.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer


def test_special_tokens_come_first_and_the_others_keep_their_order() -> None:
    numbering = Numbering.of(6, {EOS: 5})
    assert (numbering.absent, numbering.vocab) == (3, 9)
    assert numbering.order == [5, 0, 1, 2, 3, 4]
    # Only the first may be absent: padding is an ordinary token where there is no begin.
    assert Numbering.of(6, {EOS: 5, PAD: 0}).order == [5, 0, 1, 2, 3, 4]
    assert Numbering.of(6, {UNK: 1, BOS: 5, EOS: 0}).order == [1, 5, 0, 2, 3, 4]


def test_a_vocabulary_without_an_end_or_with_one_token_for_two_is_refused() -> None:
    with pytest.raises(ModelError, match="eos_token_id"):
        Numbering.of(6, {PAD: 0})
    for special in ({BOS: 5, EOS: 5}, {EOS: 6}):
        with pytest.raises(ModelError, match="not different tokens of a vocabulary of 6"):
            Numbering.of(6, special)


def adopted(size: int = 300) -> tuple[Tokenizer, dict, object]:
    parts = json.loads(byte_level_bpe(size).to_str())
    end = next(number for number, name in vocabulary(parts).items() if name == END)
    tokenizer, origin = adopt(parts, Numbering.of(len(vocabulary(parts)), {EOS: end}))
    return tokenizer, parts, origin


def test_a_byte_level_tokenizer_reads_and_restores_any_text(tmp_path: Path) -> None:
    tokenizer, _, _ = adopted()
    assert tokenizer.reads_documents
    for text in ("the quick fox", "line\n\nbreaks  and spaces ", "你好 🎉", END, "</s>", ""):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert EOS not in tokenizer.encode(text)
    assert tokenizer.pieces(tokenizer.encode("the fox"))[:1] == ["the"]
    tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json") == tokenizer


def test_a_published_file_comes_back_as_it_was() -> None:
    tokenizer, parts, origin = adopted()
    back = release(tokenizer, 3, origin)  # type: ignore[arg-type]
    assert vocabulary(back) == vocabulary(parts)
    assert back["added_tokens"] == parts["added_tokens"]
    assert back["post_processor"] == parts["post_processor"]
    # Without a record of its origin the file has our order, and only the tokens that have vectors.
    own = release(tokenizer, 3, None)
    assert [vocabulary(own)[0], len(vocabulary(own))] == ["</s>", len(vocabulary(parts))]


def test_names_of_ours_that_mean_something_else_there_are_kept_apart() -> None:
    library = __import__("tokenizers").Tokenizer(models.WordLevel({"a": 0, "<pad>": 1, "end": 2}, unk_token="<pad>"))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    parts = json.loads(library.to_str())
    tokenizer, origin = adopt(parts, Numbering.of(4, {EOS: 2}))
    assert tokenizer.vocabulary == ["<pad>", "<unk>", "<s>", "</s>", "a", "<|pad|>", "<unused-3>"]
    assert vocabulary(release(tokenizer, 3, origin)) == {0: "a", 1: "<pad>", 2: "end"}
    assert tokenizer.pieces(tokenizer.encode("a b")) == ["a", "<|pad|>"]
    with pytest.raises(ModelError, match="has a token 2, but the model has vectors for 2 tokens only"):
        adopt(parts, Numbering.of(2, {EOS: 1}))


def test_the_two_files_of_gpt2_are_one_tokenizer(tmp_path: Path) -> None:
    library = byte_level_bpe(290)
    library.model.save(str(tmp_path))
    parts = read_parts(tmp_path)
    found, _ = adopt(parts, Numbering.of(290, {EOS: 289}))
    whole, _ = adopt(json.loads(library.to_str()), Numbering.of(290, {EOS: 289}))
    assert found.encode("again and again\n 12 你") == whole.encode("again and again\n 12 你")
    assert not is_ours(vocabulary(parts))


def test_missing_and_damaged_tokenizer_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no tokenizer\.json, nor vocab\.json and merges\.txt"):
        read_parts(tmp_path)
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    (tmp_path / "merges.txt").write_text("x y\n")
    with pytest.raises(ModelError, match=r"merges.txt does not fit vocab\.json"):
        read_parts(tmp_path)
    for content in ("{", "[]", '{"model": 3}'):
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(ModelError, match=r"tokenizer.json|vocabulary"):
            vocabulary(read_parts(tmp_path))


@pytest.mark.parametrize(
    ("step", "ends"),
    [
        (None, 1),
        ({"type": "BertProcessing"}, 1),
        ({"type": "RobertaProcessing"}, 2),
        (around({BOS: "<s>", EOS: "</s>"}, {"<s>": 0, "</s>": 2}), 1),
        (around({BOS: "<s>", EOS: "</s>"}, {"<s>": 0, "</s>": 2}, ends=2), 2),
        ({"type": "TemplateProcessing"}, 1),
    ],
)
def test_a_file_says_how_many_ends_stand_between_two_texts(step: object, ends: int) -> None:
    assert pair_ends({"post_processor": step}) == ends


@pytest.mark.parametrize("step", ["x", 5, [1], {"type": "TemplateProcessing", "pair": 5}])
def test_a_damaged_post_processor_is_one_clear_line(step: object) -> None:
    with pytest.raises(ModelError, match="its post_processor cannot be read"):
        pair_ends({"post_processor": step})
