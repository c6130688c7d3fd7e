from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from ctranslate2.specs import model_spec

from headwise.errors import ModelError
from headwise.interop.ctranslate2.directory import open_directory
from headwise.interop.ctranslate2.translation_vocabulary import read_vocabularies
from headwise.text.vocabulary import SPECIAL

PIECES = ["▁a", "▁b", "a", "b"]


class Settings(model_spec.ModelSpec):
    """A model.bin that says only whether decoding starts with zeros."""

    name = "TransformerSpec"

    def __init__(self, zero: bool) -> None:
        super().__init__()
        self.zero = zero

    def variables(self, prefix: str = "", ordered: bool = False) -> Any:
        flag = model_spec.NumpyVariable(np.int8(self.zero))
        return [("decoder/start_from_zero_embedding", flag)]


def model(folder: Path, tokens: list[str], zero: bool = False, **config: Any) -> Path:
    folder.mkdir()
    Settings(zero)._serialize(str(folder / "model.bin"))
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "shared_vocabulary.json").write_text(json.dumps(tokens))
    with (folder / "sentencepiece.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b ab ba", "b a"] * 9), model_writer=file, vocab_size=9, hard_vocab_limit=False,
            minloglevel=9,
        )  # fmt: skip
    return folder


@pytest.mark.parametrize(
    ("tokens", "options", "order", "copies"),
    [
        (["<blank>", "<unk>", "<s>", "</s>"], {}, [0, 1, 2, 3], ()),
        (["<unk>", "<s>", "</s>", "<pad>"], {}, [3, 0, 1, 2], ()),
        (["<unk>", "<s>", "</s>"], {}, [7, 0, 1, 2], (None,)),
        # fairseq: decoding starts with the end of sentence, whose vector a token of ours has then too
        (["<s>", "<pad>", "</s>", "<unk>"], {"decoder_start_token": "</s>"}, [1, 3, 8, 2], (2,)),
        # Marian: decoding starts with zeros
        (["</s>", "<unk>"], {"decoder_start_token": "</s>", "zero": True}, [7, 1, 6, 0], (None, None)),
    ],
)
def test_special_tokens_come_first_and_missing_ones_get_rows(
    tmp_path: Path, tokens: list[str], options: dict[str, Any], order: list[int], copies: tuple[int | None, ...]
) -> None:
    folder = model(tmp_path / "model", [*tokens, *PIECES], **options)
    found = read_vocabularies(open_directory(folder), shared=True)
    assert found.orders["target"].tolist()[:4] == order
    assert found.added.get("target") is None if not copies else found.added["target"].copies == copies
    assert found.tokenizers.shared
    vocabulary = found.tokenizers.target.vocabulary
    assert tuple(vocabulary[:4]) == tuple(SPECIAL)
    assert [vocabulary[n] for n in found.tokenizers.source.encode("a b")] == ["▁a", "▁b"]
    assert found.sizes["source_vocab"] == len(tokens) + 4 + len(copies)


def package(folder: Path, **metadata: Any) -> None:
    (folder.parent / "metadata.json").write_text(json.dumps(metadata))


@pytest.mark.parametrize(
    ("options", "change", "words"),
    [
        ({"add_source_bos": True}, None, "a source that begins with a special token is not supported"),
        ({"decoder_start_token": None}, None, "a first target token that names the language is not supported"),
        ({"eos_token": "<end>"}, None, "the vocabulary lacks <unk> or <end>"),
        ({"eos_token": 3}, None, "eos_token must be a token, not 3"),
        ({}, lambda f: (f / "sentencepiece.model").unlink(), r"has no tokenizer; put the model's sentencepiece\.model"),
        ({}, lambda f: (f / "sentencepiece.model").rename(f / "bpe.model"), "is a table of BPE merges"),
        ({}, lambda f: package(f, target_prefix="__de__"), "a first target token that names the language"),
        ({}, lambda f: (f / "shared_vocabulary.json").write_text('["<unk>", "</s>", "a", "a"]'), "occurs twice"),
    ],
)
def test_what_is_not_supported_is_one_line(
    tmp_path: Path, options: dict[str, Any], change: Callable[[Path], object] | None, words: str
) -> None:
    folder = model(tmp_path / "model", ["<unk>", "<s>", "</s>", *PIECES], **options)
    if change:
        change(folder)
    with pytest.raises(ModelError, match=words) as caught:
        read_vocabularies(open_directory(folder), shared=True)
    assert "\n" not in str(caught.value)
