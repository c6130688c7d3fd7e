"""Checks a tokenizer's JSON file before the library reads it: a file from elsewhere must not be able to do harm.

The library runs whatever steps a file lists. A few replacements in a row make gigabytes of a word, and a regular
expression can take hours. So only steps whose cost grows with the text are accepted, patterns only if they are known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container
from pathlib import Path
from typing import Any, NamedTuple

from headwise.errors import ModelError
from headwise.files import read_bounded, shortened
from headwise.text.vocabulary import RUNS, SPELT_SPECIAL, SPELT_SPECIAL_1

LARGEST_FILE = 128 << 20  # bytes; a quarter of a million tokens take some 20 MB
LONGEST_TEXT = 16  # characters that a step may put in place of what it finds
MOST_GROWTH = 1000  # characters that one character may become: normalisation by NFKC alone makes up to 18 of one

_NORMALISERS = {
    "NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "Lowercase": 3, "Strip": 1, "StripAccents": 1, "Nmt": 1,
    "BertNormalizer": 5, "Precompiled": 18, "ByteLevel": 4, "Prepend": 1, "Replace": 1,
}  # fmt: skip
_PRE_TOKENIZERS = {
    "Split", "WhitespaceSplit", "Whitespace", "ByteLevel", "Metaspace", "BertPreTokenizer", "Digits", "Punctuation",
    "UnicodeScripts", "CharDelimiterSplit", "FixedLength",
}  # fmt: skip
_DECODERS = {"ByteFallback", "Fuse", "Strip", "ByteLevel", "Metaspace", "WordPiece", "BPEDecoder", "Replace", "CTC"}
_MODELS = {"BPE", "WordLevel", "Unigram", "WordPiece"}
# Ours, and those of published models: GPT-2 and its heirs, T5 and Whisper. None backtracks more than linearly.
_PATTERNS = {
    RUNS,
    SPELT_SPECIAL,
    SPELT_SPECIAL_1,
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    " {2,}",
    r"\s+",
    r"\s",
    " ",
}


# Two or more characters outside of given ranges, which text/sentencepiece_file.py writes: one pass over the text.
_RANGES = re.compile(r"\[\^(?:\\x\{[0-9a-f]{1,6}\}-\\x\{[0-9a-f]{1,6}\})+\]\{2,\}")
_LONGEST_RANGES = 1 << 20  # characters


class TokenizerFile(NamedTuple):
    """A tokenizer's file that was checked."""

    parts: dict[str, Any]
    size: int  # tokens


def read_tokenizer(path: str | Path, content: bytes | None = None) -> TokenizerFile:
    """A tokenizer's file, or a ModelError that says what is wrong with it; `content`: it was read already."""
    try:
        parts = json.loads(read_bounded(path, LARGEST_FILE) if content is None else content)
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such tokenizer file; check the path") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{path}: cannot read the tokenizer file ({reason})") from None
    if not isinstance(parts, dict) or not isinstance(parts.get("model"), dict):
        raise ModelError(f"{path}: not a file of the tokenizers library (it has no model); check the path")
    try:
        _check_steps(parts)
        return TokenizerFile(parts, _vocabulary_size(parts))
    except _Refused as error:
        raise ModelError(f"{path}: {error}; take a tokenizer that Headwise has trained or imported") from None


class _Refused(Exception):
    """Why a tokenizer is not accepted."""


def _vocabulary_size(parts: dict[str, Any]) -> int:
    """How many tokens there are; their ids must be 0, 1, 2, …"""
    model = parts["model"]
    vocabulary, kind = model.get("vocab"), model.get("type")
    if not _among(kind, _MODELS):
        raise _Refused(f"its model is of a kind that is not known, {_shown(kind)}")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):  # which every word gets
        if model.get(name) is not None:
            _text(model, name)
    ids: dict[Any, Any] | None
    if isinstance(vocabulary, list):
        pieces = [entry[0] if isinstance(entry, list) and len(entry) == 2 else None for entry in vocabulary]
        ids = dict(zip(pieces, range(len(pieces)), strict=True)) if all(isinstance(p, str) for p in pieces) else None
    else:
        ids = dict(vocabulary) if isinstance(vocabulary, dict) else None
    if not ids:
        raise _Refused("its vocabulary is not a list of tokens")
    unknown = model.get("unk_token")
    if (kind in ("WordLevel", "WordPiece") or unknown is not None) and kind != "Unigram" and not _among(unknown, ids):
        raise _Refused(f"its token for unknown text, {_shown(unknown)}, is not in its vocabulary")
    for added in parts.get("added_tokens") or []:
        if not isinstance(added, dict) or not isinstance(added.get("content"), str) or not added["content"]:
            raise _Refused("its added tokens are not tokens")
        ids.setdefault(added["content"], added.get("id"))
    if any(type(number) is not int for number in ids.values()) or set(ids.values()) != set(range(len(ids))):
        raise _Refused("the ids of its tokens are not 0, 1, 2, …")
    return len(ids)


def _among(name: object, known: Container[str]) -> bool:
    """Anything may stand where a name should."""
    return isinstance(name, str) and name in known


def _check_steps(parts: dict[str, Any]) -> None:
    growth = 1
    for step in _steps(parts.get("normalizer"), "normalizers"):
        kind = step.get("type")
        if not _among(kind, _NORMALISERS):
            raise _Refused(f"its normaliser {_shown(kind)} is not known")
        growth *= _NORMALISERS[str(kind)] if kind != "Replace" else max(1, len(_text(step, "content")))
        if kind == "Prepend":
            _text(step, "prepend")
        _check_pattern(step)
    if growth > MOST_GROWTH:
        raise _Refused("its normalisers can make a long text of every character")
    for name, inner, known in (
        ("pre_tokenizer", "pretokenizers", _PRE_TOKENIZERS), ("decoder", "decoders", _DECODERS),
    ):  # fmt: skip
        growth = 1
        for step in _steps(parts.get(name), inner):
            if not _among(step.get("type"), known):
                raise _Refused(f"its {name.replace('_', '-')} {_shown(step.get('type'))} is not known")
            _check_pattern(step)
            if "content" in step:
                growth *= max(1, len(_text(step, "content")))
        if growth > MOST_GROWTH:
            raise _Refused(f"its {inner} can make a long text of every character")
    added = parts.get("added_tokens")
    if added is not None and not isinstance(added, list):
        raise _Refused("its added tokens are not a list")


def _steps(step: Any, inner: str) -> list[dict[str, Any]]:
    """All steps in order, sequences within sequences included; a text has few of them."""
    found: list[dict[str, Any]] = []
    left = [] if step is None else [step]
    while left:
        one = left.pop()
        if not isinstance(one, dict) or len(found) + len(left) > 50:
            raise _Refused("its steps are damaged, or too many")
        if one.get("type") != "Sequence":
            found.append(one)
        elif isinstance(parts := one.get(inner), list):
            left += parts[::-1]
        else:
            raise _Refused("its steps are damaged, or too many")
    return found


def _check_pattern(step: dict[str, Any]) -> None:
    pattern = step.get("pattern")
    if pattern is None:
        return
    plain = pattern.get("String") if isinstance(pattern, dict) else None
    if isinstance(plain, str) and plain:
        return
    regex = pattern.get("Regex") if isinstance(pattern, dict) else None
    if isinstance(regex, str) and len(regex) <= _LONGEST_RANGES and _RANGES.fullmatch(regex):
        return
    if not _among(regex, _PATTERNS):
        raise _Refused(f"its pattern {_shown(regex)} is not known")


def _text(step: dict[str, Any], name: str) -> str:
    text = step.get(name)
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise _Refused(f"it puts {_shown(text)} into the text, which is not a short text")
    return text


def _shown(value: object) -> str:
    return shortened(repr(value), 60)
