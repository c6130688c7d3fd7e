"""Text from a language model: the prompt is read at once, then one token a step is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.bundle.directory import Bundle
from headwise.decoding.generation import Writer, Writing, prompt_ids, read_sampling, read_stops
from headwise.decoding.language_step import FastLanguageModel, Past
from headwise.decoding.options import Sampling
from headwise.decoding.sampling import Sampler, row_key
from headwise.decoding.threads import Team, is_small
from headwise.decoding.topk import log_normaliser
from headwise.errors import UsageError
from headwise.models.lm import LanguageModel
from headwise.text.tokenizer import BOS, Tokenizer

_LEAST_ROWS = 4  # samples for which a core of their own pays


class Generator(Writer):
    """A language model and its tokenizer. An end of sentence, which ends every line in training, is a line break."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, model: LanguageModel) -> None:
        self.bundle, self.tokenizer, self.model = bundle, tokenizer, model.eval()
        self.context = int(model.architecture["max_length"])
        self._fast: FastLanguageModel | None = None

    def write(
        self,
        prompt: str = "",
        *,
        samples: int = 1,
        max_tokens: int = 200,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> Iterator[list[Writing]]:
        """All samples after each token: for a caller that wants to see, or to end, what is being written."""
        if samples < 1 or max_tokens < 1:
            raise UsageError(f"samples and max_tokens must be at least 1, not {samples} and {max_tokens}")
        ids, stops = prompt_ids(self.tokenizer, prompt), read_stops(stop)
        writings = [Writing(self.tokenizer, ids, stops, max_tokens) for _ in range(samples)]
        return self._write(ids, writings, read_sampling(sampling))

    @torch.inference_mode()
    def _write(self, prompt: list[int], writings: list[Writing], sampling: Sampling) -> Iterator[list[Writing]]:
        # Made on first use and kept: the weights of a model that writes do not change.
        model = self._fast = self._fast or FastLanguageModel(self.model)
        model.check_room(len(writings), min(self.context, len(prompt) + writings[0].max_tokens))
        small = model.device.type == "cpu" and is_small(self.model)
        count = max(1, min(torch.get_num_threads(), len(writings) // _LEAST_ROWS)) if small else 1
        shares = [_Share(model, prompt, writings, range(n, len(writings), count), sampling) for n in range(count)]
        with Team(count, small=small) as team:
            while going := [share for share in shares if share.rows]:
                team(_Share.go_on, going)
                yield writings


class _Share:
    """Some of the samples, which are written together."""

    def __init__(
        self, model: FastLanguageModel, prompt: list[int], writings: list[Writing], rows: range, sampling: Sampling
    ) -> None:
        self.model, self.prompt, self.writings, self.rows = model, prompt, writings, list(rows)
        keys = [row_key(sampling.seed, prompt, number) for number in range(len(writings))]
        self.sampler = Sampler(sampling, np.array(keys, dtype=np.uint64))
        self.capacity = min(model.context, len(prompt) + writings[0].max_tokens)
        self.past: Past | None = None
        self.tokens = torch.empty(0)  # the last one of each row

    @torch.inference_mode()
    def go_on(self) -> None:
        """One more token for each row; rows that are then done are left out."""
        logits = self._logits()
        said = [self._said(row) for row in self.rows] if self.sampler.needs_history else None
        step = len(self.writings[self.rows[0]].ids)
        self.tokens, log_probs = _choose(logits, self.sampler, self.rows, step, said)
        for row, token, log_prob in zip(self.rows, self.tokens.tolist(), log_probs.tolist(), strict=True):
            self.writings[row].add(token, log_prob)
        going = [place for place, row in enumerate(self.rows) if not self.writings[row].done]
        if len(going) < len(self.rows):
            kept = torch.tensor(going, dtype=torch.long, device=self.tokens.device)
            self.rows, self.tokens = [self.rows[place] for place in going], self.tokens[kept]
            if going and self.past is not None:
                self.past.select(kept)

    def _logits(self) -> Tensor:
        """What may come next, (rows, V)."""
        context = self.model.context
        if self.past is None:
            self.past, logits = self.model.read(self._ids([self.prompt[-context:]]), len(self.rows), self.capacity)
        elif self.past.length < self.past.capacity:
            logits = self.model.step(self.past, self.tokens)
        else:  # full: the model goes on from the newer half of what it has seen
            newer = [self._said(row)[-max(1, context // 2) :] for row in self.rows]
            self.past, logits = self.model.read(self._ids(newer), len(self.rows), self.capacity)
        return logits

    def _ids(self, rows: list[list[int]]) -> Tensor:
        return torch.tensor(rows, device=self.model.device)

    def _said(self, row: int) -> list[int]:
        return [*self.prompt, *self.writings[row].ids]


def _choose(
    logits: Tensor, sampler: Sampler, rows: list[int], step: int, said: list[list[int]] | None
) -> tuple[Tensor, Tensor]:
    """A token for each row, and its log-probability before any filter."""
    norm, allowed = log_normaliser(logits), logits.clone()
    allowed[:, : BOS + 1] = -torch.inf  # padding, unknown, begin of sentence
    history = None if said is None else torch.tensor(said, device=logits.device)
    tokens = sampler(allowed, torch.tensor(rows), step, history)
    return tokens, logits.gather(1, tokens[:, None]).squeeze(1) - norm
