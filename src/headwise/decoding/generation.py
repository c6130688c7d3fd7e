"""Text generation by language models: the interface of the engines, and a text while its tokens arrive one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headwise.bundle.directory import Bundle
from headwise.decoding.options import Sampling
from headwise.errors import UsageError
from headwise.text.tokenizer import EOS, Tokenizer


@dataclass(frozen=True)
class Generation:
    """A generated text."""

    text: str  # without the prompt and without the stop string
    ids: tuple[int, ...]
    log_probs: tuple[float, ...]  # of each token, if they were requested
    stopped: Literal["length", "stop"]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Generation({self.text!r}, {len(self.ids)} tokens, stopped={self.stopped!r})"


class Writer(ABC):
    """Base class of the engines of language models: everything is built on `write`."""

    bundle: Bundle
    tokenizer: Tokenizer
    context: int | None  # tokens that the model sees at once; None: no limit

    def __repr__(self) -> str:
        seen = "any length" if self.context is None else f"context of {self.context} tokens"
        return f"{type(self).__name__}({str(self.bundle.path)!r}, {self.bundle.family}, {seen})"

    def generate(
        self,
        prompt: str = "",
        *,
        samples: int = 1,
        max_tokens: int = 200,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> list[Generation]:
        """Generates `samples` continuations of the prompt, up to `max_tokens` or a stop string; see also Sampling."""
        *_, written = self.write(prompt, samples=samples, max_tokens=max_tokens, stop=stop, **sampling)
        return [writing.generation for writing in written]

    def generate_each(self, prompts: Sequence[str], **options: Any) -> list[list[Generation]]:
        """Runs `generate` for each prompt, with the same options for all."""
        return [self.generate(prompt, **options) for prompt in prompts]

    def stream(
        self, prompt: str = "", *, max_tokens: int = 200, stop: str | Sequence[str] = (), **sampling: Any
    ) -> Iterator[str]:
        """Yields one sample piece by piece; the pieces join to the text that `generate` returns."""
        sent = 0
        for (writing,) in self.write(prompt, max_tokens=max_tokens, stop=stop, **sampling):
            if (final := writing.final_length) > sent:
                yield writing.text[sent:final]
                sent = final

    @abstractmethod
    def write(
        self,
        prompt: str = "",
        *,
        samples: int = 1,
        max_tokens: int = 200,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> Iterator[list[Writing]]:
        """Yields all samples while they grow, for callers that show them or may stop early."""


class Writing:
    """One sample while it is generated.

    An end of sentence, which ends every line in training, is a line break; where the tokenizer reads whole documents it
    ends the text.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int], stops: Sequence[str], max_tokens: int) -> None:
        """The last line of `prompt` may end within a word, which the text continues."""
        self.tokenizer, self.stops, self.max_tokens = tokenizer, stops, max_tokens
        self.ids: list[int] = []
        self.log_probs: list[float] = []
        self.stopped = False
        self._line = _cut_lines(prompt)[-1]  # tokens since the last line break
        self._skipped = len(tokenizer.decode(self._line))  # characters of that line that belong to the prompt
        self._lines = ""  # text of the finished lines
        self._text = ""
        self._seen = 0  # ids that are already in the text

    def add(self, token: int, log_prob: float | None) -> None:
        if token == EOS and self.tokenizer.reads_documents:
            self.stopped = True
            return
        self.ids.append(token)
        if log_prob is not None:
            self.log_probs.append(log_prob)
        if self.stops:
            self._find_stop()

    @property
    def done(self) -> bool:
        return self.stopped or len(self.ids) >= self.max_tokens

    @property
    def text(self) -> str:
        """The text so far, without the prompt and without the stop string."""
        if self._seen < len(self.ids):
            *ended, self._line = _cut_lines([*self._line, *self.ids[self._seen :]])
            for line in ended:
                self._lines += self._decode(line) + "\n"
                self._skipped = 0
            self._text = self._lines + self._decode(self._line)
            self._seen = len(self.ids)
        return self._text

    @property
    def final_length(self) -> int:
        """The number of characters that later tokens cannot change."""
        if self.done:
            return len(self.text)
        # The end may still become part of a stop string, or of a character some of whose bytes are missing.
        return max(0, len(self.text.rstrip("\ufffd")) - max((len(stop) - 1 for stop in self.stops), default=0))

    @property
    def generation(self) -> Generation:
        return Generation(self.text, tuple(self.ids), tuple(self.log_probs), "stop" if self.stopped else "length")

    def _decode(self, line: Sequence[int]) -> str:
        return self.tokenizer.decode(line)[self._skipped :]

    def _find_stop(self) -> None:
        ends = [place for stop in self.stops if (place := self.text.find(stop)) >= 0]
        if ends:
            self._text, self.stopped = self.text[: min(ends)], True


def prompt_ids(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """Encodes a prompt as the model reads it: an end of sentence at the start and for each line break.

    A document is its text alone, or an end of sentence if it is empty.
    """
    if tokenizer.reads_documents:
        return tokenizer.encode(prompt) or [EOS]
    ids = [EOS]
    for number, line in enumerate(prompt.split("\n")):
        ids += ([EOS] if number else []) + tokenizer.encode(line)
    return ids


def read_stops(stop: str | Sequence[str]) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    if "" in stops:
        raise UsageError("a stop string must not be empty")
    return stops


def read_sampling(settings: Mapping[str, Any]) -> Sampling:
    try:
        return Sampling(**settings)
    except TypeError as error:
        raise UsageError(f"unknown option: {error}") from error


def _cut_lines(ids: Sequence[int]) -> list[list[int]]:
    lines: list[list[int]] = [[]]
    for token in ids:
        if token == EOS:
            lines.append([])
        else:
            lines[-1].append(token)
    return lines
