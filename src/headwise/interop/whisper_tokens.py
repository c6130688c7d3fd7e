"""The special tokens of a published Whisper in our numbering, by their names and by what its files say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from headwise.text.published import Numbering
from headwise.text.speech_tokens import SpeechTokens

ENGLISH_ONLY = 51_864  # tokens of models that know no other language
_TASKS = ("transcribe", "translate")


class Renumbered:
    """Published ids and ours."""

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering

    @cached_property
    def _ours(self) -> dict[int, int]:
        return {published: number for number, published in enumerate(self.numbering.order, self.numbering.absent)}

    def ours(self, published: Any) -> int | None:
        return self._ours.get(published) if type(published) is int else None

    def ours_of(self, published: Any) -> list[int]:
        """Those that there are; anything may stand in a file."""
        found = (self.ours(number) for number in (published if isinstance(published, list) else ()))
        return [number for number in found if number is not None]

    def theirs(self, ours: int) -> int:
        return self.numbering.order[ours - self.numbering.absent]

    def theirs_of(self, ours: Iterable[int]) -> list[int]:
        order = self.numbering.order
        return [order[number - self.numbering.absent] for number in ours]


def special_tokens(
    named: Mapping[int, str], numbering: Numbering, generation: Mapping[str, Any], *, multilingual: bool | None = None
) -> SpeechTokens:
    """`named` are the tokens by published id; `generation` is the content of generation_config.json, or as much of it.

    Whether a model knows more than English is said by `multilingual`, or follows from the size of its vocabulary.
    """
    by_name, known = {name: number for number, name in named.items()}, Renumbered(numbering)

    def of_name(*names: str) -> int | None:
        return next((known.ours(by_name[name]) for name in names if name in by_name), None)

    languages = _languages(generation.get("lang_to_id"), by_name, numbering.rows)
    if multilingual is False or (multilingual is None and numbering.rows <= ENGLISH_ONLY):
        languages = {}
    no_timestamps = known.ours(generation.get("no_timestamps_token_id")) or of_name("<|notimestamps|>")
    tasks = {task: found for task in _TASKS if (found := of_name(f"<|{task}|>")) is not None}
    last = numbering.vocab - 1
    return SpeechTokens(
        languages={name: found for name, number in languages.items() if (found := known.ours(number)) is not None},
        tasks=tasks if languages and len(tasks) == len(_TASKS) else {},
        no_timestamps=no_timestamps,
        # Timestamps are the last tokens of the vocabulary.
        timestamps=no_timestamps + 1 if no_timestamps is not None and no_timestamps < last else None,
        no_speech=of_name("<|nospeech|>", "<|nocaptions|>"),
        previous=known.ours(generation.get("prev_sot_token_id")) or of_name("<|startofprev|>"),
        suppress=known.ours_of(generation.get("suppress_tokens")),
        suppress_first=known.ours_of(generation.get("begin_suppress_tokens")),
        alignment_heads=_heads(generation.get("alignment_heads")),
    )


def _languages(given: Any, by_name: Mapping[str, int], rows: int) -> dict[str, int]:
    """By generation_config.json, or the tokens between begin of transcript and the tasks: <|en|> … ."""
    if isinstance(given, dict):
        return {str(name).strip("<|>"): number for name, number in given.items() if type(number) is int}
    first, last = by_name.get("<|startoftranscript|>", rows), by_name.get("<|translate|>", 0)
    return {name.strip("<|>"): number for name, number in by_name.items() if first < number < last}


def _heads(given: Any) -> list[list[int]]:
    pairs = given if isinstance(given, list) else []
    return [p for p in pairs if isinstance(p, list) and len(p) == 2 and all(type(n) is int and n >= 0 for n in p)]
