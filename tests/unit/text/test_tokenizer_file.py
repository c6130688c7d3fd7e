"""A tokenizer from elsewhere cannot do harm: its steps are known, its ids are whole, and it is not huge."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headwise.config import schema
from headwise.errors import ModelError
from headwise.text.tokenizer import Tokenizer
from headwise.text.tokenizer_file import read_tokenizer

GROW = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}


@pytest.fixture
def parts() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Tokenizer.train(["a b c"], schema.Tokenizer(kind="word", size=9)).json)
    return found


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "char", "byte"])
@pytest.mark.parametrize("normalisation", ["none", "nfc", "nfkc"])
def test_every_tokenizer_of_ours_is_accepted(tmp_path: Path, kind: str, normalisation: str) -> None:
    settings = schema.Tokenizer.model_validate({"kind": kind, "size": 280, "normalisation": normalisation})
    tokenizer = Tokenizer.train(["one two three four five six seven eight nine ten " * 20], settings)
    tokenizer.save(tmp_path / "t.json")
    assert read_tokenizer(tmp_path / "t.json").size == tokenizer.size
    assert Tokenizer.load(tmp_path / "t.json") == tokenizer


@pytest.mark.parametrize(
    ("name", "step", "reason"),
    [
        ("normalizer", {"type": "Sequence", "normalizers": [GROW] * 9}, "a long text of every character"),
        ("normalizer", {"type": "Prepend", "prepend": "a" * 10**6}, "not a short text"),
        ("normalizer", {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}, "pattern .* is not known"),
        ("normalizer", {"type": "Magic"}, "normaliser 'Magic' is not known"),
        ("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 99}, "too many"),
        ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "(x*)*y"}}, "pattern .* is not known"),
        ("decoder", {"type": "Magic"}, "decoder 'Magic' is not known"),
        ("decoder", {"type": "Sequence", "decoders": [GROW] * 9}, "decoders can make a long text"),
        ("model", {"type": "BPE", "vocab": {"a": 0}, "end_of_word_suffix": "w" * 10**6}, "not a short text"),
        ("model", {"type": "BPE", "vocab": {"a": 0}, "continuing_subword_prefix": 7}, "not a short text"),
        ("model", {"type": "WordLevel", "vocab": {"a": 7}, "unk_token": "a"}, "are not 0, 1, 2"),
        ("model", {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "b"}, "not in its vocabulary"),
        ("model", {"type": "Oracle", "vocab": {"a": 0}}, "of a kind that is not known"),
        ("model", {"type": ["BPE"], "vocab": {"a": 0}}, "of a kind that is not known"),
        ("normalizer", {"type": []}, "is not known"),
        ("added_tokens", [7], "added tokens"),
    ],
)
def test_what_could_do_harm_is_refused(
    tmp_path: Path, parts: dict[str, Any], name: str, step: Any, reason: str
) -> None:
    (tmp_path / "t.json").write_text(json.dumps({**parts, name: step}))
    with pytest.raises(ModelError, match=reason):
        Tokenizer.load(tmp_path / "t.json")


def test_a_pipe_and_deep_json_are_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "deep").write_text("[" * 100_000)
    for name in ("pipe", "deep"):
        with pytest.raises(ModelError, match="cannot read the tokenizer file"):
            read_tokenizer(tmp_path / name)
