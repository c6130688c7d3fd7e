from __future__ import annotations

import struct
from pathlib import Path

import pytest

from headwise.errors import ModelError
from headwise.text.sentencepiece_file import read_pieces, unigram_parts


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def piece(text: str, score: float, kind: int = 1) -> bytes:
    return field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind]))


def test_pieces_and_their_scores_are_read_and_special_ones_left_out(tmp_path: Path) -> None:
    file = tmp_path / "source.spm"
    file.write_bytes(piece("<unk>", 0.0, kind=2) + piece("▁a", -1.5) + piece("é", -2.0) + field(3, field(2, b"table")))
    found = read_pieces(file)
    assert found.scores == {"▁a": -1.5, "é": -2.0}
    assert found.characters == b"table"
    parts = unigram_parts(found, {"</s>": 0, "<unk>": 1, "é": 2, "▁a": 3, ">>fra<<": 4, "<pad>": 5})
    assert [name for name, _ in parts["model"]["vocab"]] == ["</s>", "<unk>", "é", "▁a", ">>fra<<", "<pad>"]
    assert [token["content"] for token in parts["added_tokens"]] == [">>fra<<"]
    with pytest.raises(ModelError, match="does not number its tokens"):
        unigram_parts(found, {"</s>": 0, "<unk>": 2})


def test_damaged_and_foreign_files_are_one_line(tmp_path: Path) -> None:
    file = tmp_path / "source.spm"
    with pytest.raises(ModelError, match=r"source\.spm is missing"):
        read_pieces(file)
    whole = piece("▁a", -1.5) * 3
    for content, words in (
        (whole[:-3], "cut off"), (b"\xff" * 20, "cut off"), (b"", "has no pieces"),
        (whole + field(2, bytes([0x18, 2])), "not a unigram model"),
    ):  # fmt: skip
        file.write_bytes(content)
        with pytest.raises(ModelError, match=words):
            read_pieces(file)
