"""Text from a language model: the prompt is read at once, then one token a step is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.bundle.files import Bundle
from headwise.decoding.candidates import log_normaliser
from headwise.decoding.language_step import FastLanguageModel
from headwise.decoding.options import Sampling
from headwise.decoding.sampling import Sampler, row_key
from headwise.decoding.writing import Generation, Writing, prompt_ids, read_sampling, read_stops
from headwise.errors import UsageError
from headwise.models.lm import LanguageModel
from headwise.text.tokenizer import BOS, Tokenizer


class Generator:
    """A language model and its tokenizer. An end of sentence, which ends every line in training, is a line break."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, model: LanguageModel) -> None:
        self.bundle, self.tokenizer, self.model = bundle, tokenizer, model.eval()
        self.context = int(model.architecture["max_length"])
        self._fast: FastLanguageModel | None = None

    def generate(
        self,
        prompt: str = "",
        *,
        samples: int = 1,
        max_tokens: int = 200,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> list[Generation]:
        """`samples` texts that go on from the prompt, until `max_tokens` or a stop string. `sampling`: see Sampling."""
        *_, written = self.write(prompt, samples=samples, max_tokens=max_tokens, stop=stop, **sampling)
        return [writing.generation for writing in written]

    def stream(
        self, prompt: str = "", *, max_tokens: int = 200, stop: str | Sequence[str] = (), **sampling: Any
    ) -> Iterator[str]:
        """One sample, piece by piece: together the text that `generate` gives for the same arguments."""
        told = 0
        for (writing,) in self.write(prompt, max_tokens=max_tokens, stop=stop, **sampling):
            if (sure := writing.sure) > told:
                yield writing.text[told:sure]
                told = sure

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
        keys = [row_key(sampling.seed, prompt, number) for number in range(len(writings))]
        sampler = Sampler(sampling, np.array(keys, dtype=np.uint64))
        # Made on first use and kept: the weights of a model that writes do not change.
        model = self._fast = self._fast or FastLanguageModel(self.model)
        device = next(self.model.parameters()).device
        capacity = min(self.context, len(prompt) + writings[0].max_tokens)
        rows = list(range(len(writings)))
        past, logits = model.read(torch.tensor([prompt[-self.context :]], device=device), len(rows), capacity)
        for step in range(writings[0].max_tokens):
            said = [[*prompt, *writings[row].ids] for row in rows] if sampler.needs_history else None
            tokens, log_probs = _choose(logits, sampler, rows, step, said)
            for row, token, log_prob in zip(rows, tokens.tolist(), log_probs.tolist(), strict=True):
                writings[row].add(token, log_prob)
            yield writings
            going = [place for place, row in enumerate(rows) if not writings[row].done]
            if not going:
                return
            if len(going) < len(rows):
                kept = torch.tensor(going, device=device)
                past.select(kept)
                tokens, rows = tokens[kept], [rows[place] for place in going]
            if past.length < past.capacity:
                logits = model.step(past, tokens)
            else:  # full: the model goes on from the newer half of what it has seen
                newer = [[*prompt, *writings[row].ids][-max(1, self.context // 2) :] for row in rows]
                past, logits = model.read(torch.tensor(newer, device=device), len(rows), capacity)


def _choose(
    logits: Tensor, sampler: Sampler, rows: list[int], step: int, said: list[list[int]] | None
) -> tuple[Tensor, Tensor]:
    """A token for each row, and its log-probability before any filter."""
    norm, allowed = log_normaliser(logits), logits.clone()
    allowed[:, : BOS + 1] = -torch.inf  # padding, unknown, begin of sentence
    history = None if said is None else torch.tensor(said, device=logits.device)
    tokens = sampler(allowed, torch.tensor(rows), step, history)
    return tokens, logits.gather(1, tokens[:, None]).squeeze(1) - norm
