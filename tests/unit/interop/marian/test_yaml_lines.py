from __future__ import annotations

from pathlib import Path

import pytest

from headwise.errors import ModelError
from headwise.interop.marian.yaml_lines import read_settings, read_vocabulary


def test_tokens_are_read_as_they_are_whatever_yaml_would_make_of_them(tmp_path: Path) -> None:
    file = tmp_path / "vocab.yml"
    lines = ["</s>: 0", '"<unk>": 1', "y: 2", "1.0: 3", '":": 4', "'it''s': 5", r'"\"\\\x41\u00e9\n": 6',
             "? long", ": 7", "null: 8", "a: b: 9", '"▁#": 10', "\u2028: 11", "▁ü: 12"]  # fmt: skip
    file.write_text("\n".join(lines) + "\r\n", encoding="utf-8")
    assert list(read_vocabulary(file)) == [
        "</s>", "<unk>", "y", "1.0", ":", "it's", '"\\Aé\n', "long", "null", "a: b", "▁#", "\u2028", "▁ü"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a: 0\nb\n", r"vocab\.yml:2: there should be a token and its id"),
        (b"a: x\n", r"vocab\.yml:1: there should be a token and its id"),
        (b"a: 0\nb: 2\n", "does not number its tokens"),
        (b"a: 0\na: 1\n", "does not number its tokens"),
        (b"", "does not number its tokens"),
        (b"\xff: 0\n", "cannot be read"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "vocab.yml").write_bytes(content)
    with pytest.raises(ModelError, match=words):
        read_vocabulary(tmp_path / "vocab.yml")


def test_settings_are_names_and_values_and_lists_are_left_out() -> None:
    text = 'dim-emb: 512\ndim-vocabs:\n  - 9\nempty: ""\nquoted: "a: b"\n'
    assert read_settings(text) == {"dim-emb": "512", "dim-vocabs": "", "empty": "", "quoted": "a: b"}
