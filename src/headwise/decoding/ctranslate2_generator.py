"""The likeliest text of a language model, by CTranslate2 on an exported model. It imports no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ctranslate2

from headwise.bundle.files import Bundle
from headwise.decoding.ctranslate2_engine import threads_of_one
from headwise.decoding.writing import Writer, Writing, prompt_ids, read_sampling, read_stops
from headwise.errors import ModelError, UsageError
from headwise.text.tokenizer import BOS, PAD, UNK, Tokenizer

_AT_ONCE = 128  # tokens written before somebody looks for a stop string


class CTranslate2Generator(Writer):
    """A `Writer` at temperature 0: CTranslate2's own sampling cannot be seeded by text."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, directory: Path) -> None:
        self.bundle, self.tokenizer = bundle, tokenizer
        self.context = int(bundle.architecture["max_length"])
        self._pieces = tokenizer.vocabulary
        self._never = [[self._pieces[number]] for number in (UNK, BOS)]
        threads = threads_of_one(directory)
        try:
            self._inner = ctranslate2.Generator(str(directory), device="cpu", inter_threads=1, intra_threads=threads)
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{directory} is not a model that ctranslate2 can read: {error}") from error

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
        asked = read_sampling(sampling)
        if asked.temperature != 0 or asked.repetition_penalty != 1.0 or samples != 1:
            raise UsageError(
                "the ctranslate2 engine writes the one likeliest text: set temperature 0, or use the torch engine"
            )
        if max_tokens < 1:
            raise UsageError(f"max_tokens must be at least 1, not {max_tokens}")
        ids = prompt_ids(self.tokenizer, prompt)
        return self._write(ids, Writing(self.tokenizer, ids, read_stops(stop), max_tokens))

    def _write(self, prompt: list[int], writing: Writing) -> Iterator[list[Writing]]:
        seen = prompt[-self.context :]  # what the model reads before it writes on
        while not writing.done:
            if len(seen) > self.context:  # as the torch engine: the last token is said, then the newer half is read
                seen = [*prompt, *writing.ids][-max(1, self.context // 2) :]
            room = min(_AT_ONCE, writing.max_tokens - len(writing.ids), self.context + 1 - len(seen))
            tokens = self._next(seen, room)
            for token, log_prob in zip(tokens, self._score(seen, tokens), strict=True):
                if not writing.done:
                    writing.add(token, log_prob)
            seen = [*seen, *tokens]
            yield [writing]

    def _next(self, seen: Sequence[int], count: int) -> list[int]:
        """The likeliest tokens, `count` of them. Padding stands in for an end: the end of sentence is a line break."""
        (result,) = self._inner.generate_batch(
            [[self._pieces[number] for number in seen]],
            max_length=count,
            min_length=count,
            end_token=self._pieces[PAD],
            suppress_sequences=self._never,
            include_prompt_in_result=False,
            sampling_topk=1,
        )
        return list(result.sequences_ids[0])

    def _score(self, seen: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """log p of each token: those of the search leave the forbidden tokens out, which the model does not."""
        (result,) = self._inner.score_batch([[self._pieces[number] for number in (*seen, *tokens)]])
        return list(result.log_probs[len(seen) - 1 :])
