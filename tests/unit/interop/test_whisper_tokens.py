"""Special tokens of published Whispers by their names and by what files say."""

from __future__ import annotations

from typing import Any

import pytest

from headwise.interop.whisper_tokens import Renumbered, special_tokens
from headwise.text.published import Numbering

NAMES = ["a", "b", "<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|zh|>", "<|translate|>", "<|transcribe|>",
         "<|startoflm|>", "<|startofprev|>", "<|nocaptions|>", "<|notimestamps|>", "<|0.00|>", "<|0.02|>"]  # fmt: skip
NAMED = dict(enumerate(NAMES))
NUMBERING = Numbering.of(len(NAMES), {2: 3, 3: 2})  # our begin and end of sentence


def ours(name: str) -> int:
    number = Renumbered(NUMBERING).ours(NAMES.index(name))
    assert number is not None
    return number


def test_names_alone_tell_what_tokens_mean() -> None:
    tokens = special_tokens(NAMED, NUMBERING, {}, multilingual=True)
    assert tokens.languages == {"en": ours("<|en|>"), "zh": ours("<|zh|>")}
    assert tokens.tasks == {"transcribe": ours("<|transcribe|>"), "translate": ours("<|translate|>")}
    assert (tokens.no_timestamps, tokens.timestamps) == (ours("<|notimestamps|>"), ours("<|0.00|>"))
    assert (tokens.no_speech, tokens.previous) == (ours("<|nocaptions|>"), ours("<|startofprev|>"))


def test_a_small_vocabulary_knows_english_only() -> None:
    tokens = special_tokens(NAMED, NUMBERING, {})
    assert (tokens.languages, tokens.tasks) == ({}, {})
    assert tokens.timestamps == ours("<|0.00|>")


def test_ids_are_turned_and_turned_back() -> None:
    turned = Renumbered(NUMBERING)
    assert [turned.ours(number) for number in (2, 3, 0, 4)] == [3, 2, 4, 6]
    assert turned.theirs_of(turned.ours_of([0, 1, 2, 3, 13])) == [0, 1, 2, 3, 13]
    assert turned.theirs(3) == 2


@pytest.mark.parametrize("nonsense", [7, "x", [None, "y", 10_000, -1, True], {"a": 1}])
def test_what_files_say_is_not_believed(nonsense: Any) -> None:
    keys = ("suppress_tokens", "begin_suppress_tokens", "alignment_heads", "no_timestamps_token_id", "lang_to_id")
    tokens = special_tokens(NAMED, NUMBERING, dict.fromkeys(keys, nonsense), multilingual=True)
    assert all(number < NUMBERING.vocab for number in tokens.ids())
    assert tokens.alignment_heads == []
