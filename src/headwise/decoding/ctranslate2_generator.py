"""Greedy generation by CTranslate2 on an exported language model. It imports no torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import repeat, zip_longest
from pathlib import Path
from typing import Any

import ctranslate2

from headwise.bundle.directory import Bundle
from headwise.decoding.ctranslate2_workers import Workers
from headwise.decoding.generation import Generation, Writer, Writing, prompt_ids, read_sampling, read_stops
from headwise.errors import UsageError
from headwise.text.tokenizer import BOS, PAD, UNK, Tokenizer

_AT_ONCE = 128  # tokens written before somebody looks for a stop string
_MOST_ROWS = 64  # texts per worker at once
POSITIONS = 2048  # tokens of a model without a limit of its own: as long as an export's table of positions


class CTranslate2Generator(Writer):
    """A `Writer` at temperature 0: CTranslate2's own sampling cannot be seeded by text.

    `token_scores` also gives the log-probability of each token, for which the text is read again.
    """

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, directory: Path, *, token_scores: bool = True) -> None:
        self.bundle, self.tokenizer, self.token_scores = bundle, tokenizer, token_scores
        self.context: int = bundle.settings.longest or POSITIONS
        self._pieces = tokenizer.vocabulary
        self._never = [[self._pieces[number]] for number in (UNK, BOS)]
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
        """The text after each stretch of tokens."""
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
                "the ctranslate2 engine writes the one likeliest text: set temperature 0, or use the torch engine"
            )
        if max_tokens < 1:
            raise UsageError(f"max_tokens must be at least 1, not {max_tokens}")
        stops, read = read_stops(stop), [prompt_ids(self.tokenizer, prompt) for prompt in prompts]
        return [_Row(ids, Writing(self.tokenizer, ids, stops, max_tokens), self.context) for ids in read]

    def _write(self, rows: Sequence[_Row]) -> Iterator[list[Writing]]:
        while going := [row for row in rows if not row.writing.done]:
            alike = defaultdict(list)  # CTranslate2 reads prompts of one length as it reads each of them alone
            for row in going:
                alike[row.room(), len(row.seen)].append(row)
            written = [(group, self._begin(group, room)) for (room, _), group in alike.items()]
            for group, results in written:
                tokens = [list(result.result().sequences_ids[0]) for result in results]
                scores = self._score(group, tokens) if self.token_scores else repeat(())
                for row, said, log_probs in zip(group, tokens, scores, strict=False):
                    row.add(said, log_probs)
            yield [row.writing for row in rows]

    def _begin(self, rows: Sequence[_Row], count: int) -> Any:
        """The likeliest tokens, `count` per row. Padding stands in for an end: the end of sentence is a line break."""
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
        """log p of each token: those of the search leave the forbidden tokens out, which the model does not."""
        texts = [self._spelled([*row.seen, *said]) for row, said in zip(rows, tokens, strict=True)]
        results = self._generator.score_batch(texts, max_batch_size=self._workers.share(len(rows), _MOST_ROWS))
        return (result.log_probs[len(row.seen) - 1 :] for row, result in zip(rows, results, strict=True))

    def _spelled(self, ids: Sequence[int]) -> list[str]:
        return [self._pieces[number] for number in ids]


class _Row:
    """One text: its prompt, what has been written, and what the model reads before it writes on."""

    def __init__(self, prompt: list[int], writing: Writing, context: int) -> None:
        self.prompt, self.writing, self.context = prompt, writing, context
        self.seen = prompt[-context:]

    def room(self) -> int:
        """Tokens that can be written at once."""
        if len(self.seen) > self.context:  # as the torch engine: the last token is said, then the newer half is read
            self.seen = [*self.prompt, *self.writing.ids][-max(1, self.context // 2) :]
        return min(_AT_ONCE, self.writing.max_tokens - len(self.writing.ids), self.context + 1 - len(self.seen))

    def add(self, tokens: list[int], log_probs: Sequence[float]) -> None:
        for token, log_prob in zip_longest(tokens, log_probs):
            if not self.writing.done:
                self.writing.add(token, log_prob)
        self.seen = [*self.seen, *tokens]
