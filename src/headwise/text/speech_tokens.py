"""What the special tokens of a speech model mean: languages, tasks, timestamps, silence. Models trained here have none.

    preprocessing.json     {"kind": "log-mel", "mels": 80, "tokens": {"languages": {"en": 50260, …}, …}}

Ids are those of the model's tokenizer. What a transcript begins with is the prompt: begin of sentence, then language,
task and 'no timestamps', as far as the model has them (Radford et al. 2022, section 2.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from headwise.config.family import Section
from headwise.errors import ModelError, UsageError
from headwise.text.vocabulary import BOS, EOS, PAD, UNK

KIND = "log-mel"
SECONDS_PER_TIMESTAMP = 0.02
LATEST_START = 50  # timestamps: a window's first segment begins within its first second
SpeechTask = Literal["transcribe", "translate"]

_Id = Annotated[int, Field(ge=0)]
_Name = Annotated[str, Field(min_length=1, max_length=64)]
_Head = Annotated[list[_Id], Field(min_length=2, max_length=2)]  # layer and head


class SpeechTokens(Section):
    """Ids of special tokens. What a model lacks is None or empty."""

    languages: dict[_Name, _Id] = Field({}, max_length=1000)
    tasks: dict[_Name, _Id] = Field({}, max_length=100)
    no_timestamps: _Id | None = None
    timestamps: _Id | None = None  # of 0.00 s; the others follow in steps of 0.02 s, to the end of the vocabulary
    no_speech: _Id | None = None
    previous: _Id | None = None  # stands before the text of the window before
    suppress: list[_Id] = Field([], max_length=100_000)  # never written
    suppress_first: list[_Id] = Field([], max_length=100_000)  # never written as the first token
    alignment_heads: list[_Head] = Field([], max_length=10_000)  # whose attention follows the sound

    def ids(self) -> list[int]:
        single = (self.no_timestamps, self.timestamps, self.no_speech, self.previous)
        several = (*self.languages.values(), *self.tasks.values(), *self.suppress, *self.suppress_first)
        return [number for number in (*single, *several) if number is not None]

    def prompt(self, language: str | None, task: SpeechTask, timestamps: bool) -> tuple[int, ...]:
        """What a transcript begins with."""
        ids = [BOS]
        if self.languages:
            if language not in self.languages:
                raise UsageError(f"the model does not know the language '{language}'; it has {_listed(self.languages)}")
            ids.append(self.languages[language])
        elif task == "translate":
            raise UsageError("the model writes down what is said, and does not translate")
        if self.tasks:
            ids.append(self.tasks[task])
        if self.no_timestamps is not None and not timestamps:
            ids.append(self.no_timestamps)
        return tuple(ids)

    def special(self, vocab: int) -> frozenset[int]:
        """All tokens that are not text."""
        marks = {*self.languages.values(), *self.tasks.values(), self.no_timestamps, self.no_speech, self.previous}
        times = range(vocab, vocab) if self.timestamps is None else range(self.timestamps, vocab)
        return frozenset(number for number in (*marks, *times, *range(EOS + 1)) if number is not None)

    def never(self) -> list[int]:
        """What a transcript never has: suppressed tokens, and marks that stand in prompts only."""
        found = {*self.suppress, *self.languages.values(), *self.tasks.values()} - {EOS}
        found |= {n for n in (self.no_timestamps, self.no_speech, self.previous) if n is not None}
        return sorted(found)

    def published_order(self, vocab: int) -> list[int]:
        """Our ids in the order of published models: text, end, begin, marks, 'no timestamps', times.

        CTranslate2 tells what a token is by where it stands there. Padding and unknown, which no text has, are left
        out.
        """
        times = range(vocab, vocab) if self.timestamps is None else range(self.timestamps, vocab)
        languages_first = (*self.languages.values(), *self.tasks.values(), self.previous, self.no_speech)
        marks = [number for number in (*languages_first, self.no_timestamps) if number is not None]
        apart = {PAD, UNK, BOS, EOS, *marks, *times}
        return [*(number for number in range(vocab) if number not in apart), EOS, BOS, *marks, *times]


class _Preprocessing(Section):
    kind: Literal["log-mel"]
    mels: Annotated[int, Field(ge=1, le=1024)]
    tokens: SpeechTokens = SpeechTokens()


def preprocessing(mels: int, tokens: SpeechTokens | None = None) -> dict[str, Any]:
    """The content of preprocessing.json."""
    written = {} if tokens is None else tokens.model_dump(mode="json", exclude_defaults=True)
    return {"kind": KIND, "mels": mels, **({"tokens": written} if written else {})}


def read_speech_tokens(content: Mapping[str, Any], mels: int, vocab: int, place: Path) -> SpeechTokens:
    """Checks what preprocessing.json says against the model, whose directory is `place`."""
    try:
        read = _Preprocessing.model_validate(dict(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        raise ModelError(
            f"{place}: preprocessing.json is damaged: {name} ({first['msg']}); take another copy"
        ) from None
    if read.mels != mels:
        raise ModelError(f"{place}: preprocessing.json has {read.mels} mel bins, but the model reads {mels}")
    if (highest := max(read.tokens.ids(), default=0)) >= vocab:
        raise ModelError(f"{place}: preprocessing.json names token {highest}, but the model has {vocab}")
    if read.tokens.tasks and not {"transcribe", "translate"} <= read.tokens.tasks.keys():
        raise ModelError(f"{place}: preprocessing.json names no token for the task transcribe or translate")
    return read.tokens


def _listed(languages: Mapping[str, int]) -> str:
    names = list(languages)
    return ", ".join(names) if len(names) <= 12 else f"{', '.join(names[:10])} and {len(names) - 10} more"
