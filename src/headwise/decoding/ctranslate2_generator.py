"""Greedy generation with CTranslate2 on an exported language model. Does not import torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import repeat, zip_longest
from pathlib import Path
from typing import Any

import ctranslate2

from headwise.bundle.directory import Bundle
from headwise.cancellation import check_cancelled
from headwise.decoding.ctranslate2_workers import Workers
from headwise.decoding.generation import Generation, Writer, Writing, prompt_ids, read_sampling, read_stops
from headwise.errors import UsageError
from headwise.text.tokenizer import BOS, PAD, UNK, Tokenizer

_AT_ONCE = 128  # tokens generated between two checks for stop strings
_MOST_ROWS = 64  # texts per worker at once
POSITIONS = 2048  # context of a model without a limit of its own: the length of an export's position table


class CTranslate2Generator(Writer):
    """A `Writer` for temperature 0 only: CTranslate2's own sampling cannot be seeded per text.

    `token_scores` adds the log-probability of each token, which takes a second pass over the text.
    """

    def __init__(
        self, bundle: Bundle, tokenizer: Tokenizer, directory: Path, *, never: Sequence[int] = (),
        token_scores: bool = True,
    ) -> None:  # fmt: skip
        self.bundle, self.tokenizer, self.token_scores = bundle, tokenizer, token_scores
        self.context: int = bundle.settings.longest or POSITIONS
        self._pieces = tokenizer.vocabulary
        self._never = [[self._pieces[number]] for number in (UNK, BOS, *never)]
        self._workers = Workers(ctranslate2.Generator, directory)
        self._generator = self._workers.engine

    def write(
        self,
        prompt: str = "",
        *,
        samples: int = 1,
        max_tokens: int = 200,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> Iterator[list[Writing]]:
        """Yields the text after each stretch of at most 128 tokens."""
        return self._write(self._rows([prompt], samples, max_tokens, stop, sampling))

    def generate_each(
        self,
        prompts: Sequence[str],
        *,
        samples: int = 1,
        max_tokens: int = 200,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> list[list[Generation]]:
        rows = self._rows(prompts, samples, max_tokens, stop, sampling)
        for _ in self._write(rows):
            pass
        return [[row.writing.generation] for row in rows]

    def _rows(
        self, prompts: Sequence[str], samples: int, max_tokens: int, stop: str | Sequence[str], sampling: dict[str, Any]
    ) -> list[_Row]:
        asked = read_sampling(sampling)
        if asked.temperature != 0 or asked.repetition_penalty != 1.0 or samples != 1:
            raise UsageError(
                "the ctranslate2 engine generates one text, greedily: set temperature 0, or use the torch engine"
            )
        if max_tokens < 1:
            raise UsageError(f"max_tokens must be at least 1, not {max_tokens}")
        stops, read = read_stops(stop), [prompt_ids(self.tokenizer, prompt) for prompt in prompts]
        return [_Row(ids, Writing(self.tokenizer, ids, stops, max_tokens), self.context) for ids in read]

    def _write(self, rows: Sequence[_Row]) -> Iterator[list[Writing]]:
        while going := [row for row in rows if not row.writing.done]:
            by_length = defaultdict(list)  # without padding, CTranslate2 computes the same as for each prompt alone
            check_cancelled()
            for row in going:
                by_length[row.room(), len(row.seen)].append(row)
            begun = [(group, self._begin(group, room)) for (room, _), group in by_length.items()]
            for group, results in begun:
                tokens = [list(result.result().sequences_ids[0]) for result in results]
                scores = self._score(group, tokens) if self.token_scores else repeat(())
                for row, new, log_probs in zip(group, tokens, scores, strict=False):
                    row.add(new, log_probs)
            yield [row.writing for row in rows]

    def _begin(self, rows: Sequence[_Row], count: int) -> Any:
        """Starts generating `count` tokens per row. Padding is the end token; the end of sentence is a line break."""
        return self._generator.generate_batch(
            [self._spelled(row.seen) for row in rows],
            max_batch_size=self._workers.share(len(rows), _MOST_ROWS),
            max_length=count,
            min_length=count,
            end_token=self._pieces[PAD],
            suppress_sequences=self._never,
            include_prompt_in_result=False,
            sampling_topk=1,
            asynchronous=True,
        )

    def _score(self, rows: Sequence[_Row], tokens: list[list[int]]) -> Iterator[Sequence[float]]:
        """Computes log p of each token; the scores of the search do not count because they exclude forbidden tokens."""
        texts = [self._spelled([*row.seen, *new]) for row, new in zip(rows, tokens, strict=True)]
        results = self._generator.score_batch(texts, max_batch_size=self._workers.share(len(rows), _MOST_ROWS))
        return (result.log_probs[len(row.seen) - 1 :] for row, result in zip(rows, results, strict=True))

    def _spelled(self, ids: Sequence[int]) -> list[str]:
        return [self._pieces[number] for number in ids]


class _Row:
    """One text: its prompt, what has been generated, and what the model reads before it continues."""

    def __init__(self, prompt: list[int], writing: Writing, context: int) -> None:
        self.prompt, self.writing, self.context = prompt, writing, context
        self.seen = prompt[-context:]

    def room(self) -> int:
        """Returns the number of tokens that can be generated in one call."""
        if len(self.seen) > self.context:  # as in the torch engine: a full context is cut to its newer half
            self.seen = [*self.prompt, *self.writing.ids][-max(1, self.context // 2) :]
        return min(_AT_ONCE, self.writing.max_tokens - len(self.writing.ids), self.context + 1 - len(self.seen))

    def add(self, tokens: list[int], log_probs: Sequence[float]) -> None:
        for token, log_prob in zip_longest(tokens, log_probs):
            if not self.writing.done:
                self.writing.add(token, log_prob)
        self.seen = [*self.seen, *tokens]
