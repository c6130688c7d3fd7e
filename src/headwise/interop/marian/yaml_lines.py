"""Marian's YAML files, of which two simple forms occur: settings, and tokens with their ids, one per line.

They are read line by line: a YAML parser would be one more dependency, and reads some tokens (`y`, `null`, `1.0`, `#`)
as something else.
"""

from __future__ import annotations

import re
from pathlib import Path

from headwise.errors import ModelError
from headwise.files import read_bounded

LARGEST_VOCABULARY = 64 << 20  # bytes
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v",
            "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}  # fmt: skip
_ESCAPED = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)


def read_settings(text: str) -> dict[str, str]:
    """Settings of the form `name: value`; lists are left out."""
    lines = (line.split(":", 1) for line in text.splitlines() if line[:1].isalpha() and ":" in line)
    return {name: _unquoted(value.strip()) for name, value in lines}


def read_vocabulary(file: Path) -> dict[str, int]:
    """Tokens with their ids, which are 0, 1, 2, …"""
    try:
        lines = read_bounded(file, LARGEST_VOCABULARY).decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    found: dict[str, int] = {}
    pending: str | None = None
    for number, line in enumerate((line.rstrip("\r") for line in lines), 1):
        if line.startswith("? "):  # a long key has its value on the next line
            pending = line[2:]
            continue
        if not line.strip():
            continue
        token, mark, value = (pending, ":", line.removeprefix(": ")) if pending is not None else line.rpartition(":")
        pending = None
        if not mark or not value.strip().isdigit():
            raise ModelError(f"{file}:{number}: there should be a token and its id, as in `dog: 5`, not {line[:60]!r}")
        found[_unquoted(token.strip(" "))] = int(value)
    if sorted(found.values()) != list(range(len(found))) or not found:
        raise ModelError(f"{file} does not number its tokens 0, 1, 2, …; take another copy of the model")
    return found


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return _ESCAPED.sub(_character, text[1:-1])
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def _character(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 else "\ufffd"
    return _ESCAPES.get(code, code)
