"""SentencePiece's model files, read without its library: their pieces become a unigram model of `tokenizers`.

The file is a protocol buffer: a row of fields, each a number (field << 3 | kind) and its content. Of its fields three
matter here: 1, a piece (1 text, 2 score, 3 type); 2, how it was trained (3 the kind of model); 3, its normalisation
(2 a compiled table of characters, 4 whether extra spaces are removed).
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.errors import ModelError
from headwise.files import read_bounded

LARGEST_FILE = 64 << 20  # bytes
_NORMAL, _UNIGRAM = 1, 1  # the type of a piece, the kind of a model
_UNKNOWN_PENALTY = 10.0  # SentencePiece's: an unknown character is so much less likely than the rarest piece
SPACE = "▁"
_MARKS = re.compile(r">>.*<<|<extra_id_\d+>")
_NO_CHARACTER = "\uffff"  # stands for unknown ones; no text has it


@dataclass(frozen=True)
class Pieces:
    """What a file says."""

    scores: dict[str, float]  # of the pieces that text can be made of
    characters: bytes  # the compiled table of its normalisation; empty: none
    names: tuple[str, ...] = ()  # all pieces by their number, control and unknown ones too


def read_pieces(file: Path) -> Pieces:
    """A unigram model; other kinds are refused."""
    try:
        content = read_bounded(file, LARGEST_FILE)
    except FileNotFoundError:
        raise ModelError(f"{file} is missing; add the model's tokenizer files") from None
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror or error}") from None
    scores: dict[str, float] = {}
    names: list[str] = []
    characters = b""
    try:
        for field, value in _fields(content):
            inner = dict(_fields(value)) if field in (1, 2, 3) else {}
            if field == 1:
                names.append(inner[1].decode("utf-8"))
            if field == 1 and inner.get(3, _NORMAL) == _NORMAL:
                scores[inner[1].decode("utf-8")] = struct.unpack("<f", inner[2])[0]
            elif field == 2 and inner.get(3, _UNIGRAM) != _UNIGRAM:
                raise ModelError(f"{file} is not a unigram model; Headwise reads unigram models of SentencePiece only")
            elif field == 3:
                characters = inner.get(2, b"")
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise ModelError(f"{file} is cut off or not a file of SentencePiece ({error}); take another copy") from None
    if not scores:
        raise ModelError(f"{file} has no pieces; take another copy")
    return Pieces(scores, characters, tuple(names))


def unigram_parts(pieces: Pieces, ids: Mapping[str, Any]) -> dict[str, Any]:
    """A file of the tokenizers library that splits text into these pieces and has the ids of a vocabulary.

    Tokens of the vocabulary that are not pieces of this side never match, but for single characters: SentencePiece
    makes one unknown piece of neighbouring unknown characters, whose text is looked up in the vocabulary all the same.
    So one such character alone can be a token, but two or more together are unknown.
    """
    ordered = sorted(ids, key=lambda name: int(ids[name]))
    if [ids[name] for name in ordered] != list(range(len(ordered))) or "<unk>" not in ids or "</s>" not in ids:
        raise ModelError("the vocabulary does not number its tokens 0, 1, 2, …, or lacks <unk> or </s>")
    lowest = min(pieces.scores.values())
    vocabulary = [[name, _score(name, pieces, lowest)] for name in ordered]
    space = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    tidy: list[dict[str, Any]] = [
        {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    ]
    if any(len(name) == 1 and name not in pieces.scores for name in ordered):
        tidy.append({"type": "Replace", "pattern": {"Regex": _unknown_run(pieces)}, "content": _NO_CHARACTER})
    if pieces.characters:
        tidy.insert(0, {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(pieces.characters).decode()})
    end = {"id": "</s>", "type_id": 0}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_tag(name, ids[name]) for name in ordered if _MARKS.fullmatch(name)],
        "normalizer": {"type": "Sequence", "normalizers": tidy},
        "pre_tokenizer": space,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [text, {"SpecialToken": end}],
            "pair": [text, {"SpecialToken": end}],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [ids["</s>"]], "tokens": ["</s>"]}},
        },
        "decoder": space,
        "model": {"type": "Unigram", "unk_id": ids["<unk>"], "vocab": vocabulary, "byte_fallback": False},
    }


def _unknown_run(pieces: Pieces) -> str:
    """A pattern of two or more neighbouring characters that are in no piece."""
    known = sorted({ord(character) for piece in pieces.scores for character in piece} | {ord(" ")})
    ranges: list[list[int]] = []
    for code in known:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    written = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)
    return f"[^{written}]{{2,}}"


def _score(name: str, pieces: Pieces, lowest: float) -> float:
    if name in pieces.scores:
        return pieces.scores[name]
    return lowest - _UNKNOWN_PENALTY if len(name) == 1 else lowest - 1000.0


def _tag(name: str, number: int) -> dict[str, Any]:
    """A language tag, such as >>fra<<, or a sentinel of T5, such as <extra_id_0>: one token wherever it stands."""
    return {
        "id": number, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
        "special": False,
    }  # fmt: skip


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """Number and content of each field: whole numbers, four or eight bytes, or bytes."""
    place = 0
    while place < len(content):
        key, place = _number(content, place)
        kind = key & 7
        if kind == 0:
            value, place = _number(content, place)
            yield key >> 3, value
            continue
        size, place = (8, place) if kind == 1 else (4, place) if kind == 5 else _number(content, place)
        if kind not in (1, 2, 5) or place + size > len(content):
            raise ValueError("a field reaches beyond the end")
        yield key >> 3, content[place : place + size]
        place += size


def _number(content: bytes, place: int) -> tuple[int, int]:
    """A whole number in base 128, lowest digit first, and where it ends."""
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise ValueError("a number is too long")
