"""Text from a language model: the prompt is read at once, then one token a step is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from headwise.bundle.files import Bundle
from headwise.decoding.candidates import log_normaliser
from headwise.decoding.options import Sampling
from headwise.decoding.sampling import Sampler, row_key
from headwise.errors import UsageError
from headwise.models.lm import LanguageModel, LanguageState
from headwise.text.tokenizer import BOS, EOS, Tokenizer


@dataclass(frozen=True)
class Generation:
    """What a model wrote after a prompt."""

    text: str  # without the prompt and without the stop string
    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    stopped: Literal["length", "stop"]


@dataclass
class _Writing:
    """One sample while it is written."""

    line: list[int]  # tokens since the last line break, those of the prompt included
    skipped: int  # characters of that line which are the prompt's
    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    lines: str = ""  # text of the lines before
    text: str = ""
    stopped: bool = False


class Generator:
    """A language model and its tokenizer. An end of sentence, which ends every line in training, is a line break."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, model: LanguageModel) -> None:
        self.bundle, self.tokenizer, self.model = bundle, tokenizer, model.eval()
        self.context = int(model.architecture["max_length"])

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
        *_, written = self._write(prompt, samples, max_tokens, _stops(stop), _sampling(sampling))
        return [
            Generation(w.text, tuple(w.ids), tuple(w.log_probs), "stop" if w.stopped else "length") for w in written
        ]

    def stream(
        self, prompt: str = "", *, max_tokens: int = 200, stop: str | Sequence[str] = (), **sampling: Any
    ) -> Iterator[str]:
        """One sample, piece by piece: together the text that `generate` gives for the same arguments."""
        stops = _stops(stop)
        told = 0
        for (writing,) in self._write(prompt, 1, max_tokens, stops, _sampling(sampling)):
            safe = len(writing.text)
            if not writing.stopped and len(writing.ids) < max_tokens:
                # The end may still become part of a stop string, or of a character that has not all of its bytes.
                safe = len(writing.text.rstrip("\ufffd")) - max((len(s) - 1 for s in stops), default=0)
            if safe > told:
                yield writing.text[told:safe]
                told = safe

    @torch.inference_mode()
    def _write(
        self, prompt: str, samples: int, max_tokens: int, stops: tuple[str, ...], sampling: Sampling
    ) -> Iterator[list[_Writing]]:
        """All samples after each step."""
        if samples < 1 or max_tokens < 1:
            raise UsageError(f"samples and max_tokens must be at least 1, not {samples} and {max_tokens}")
        ids = self._prompt_ids(prompt)
        line = ids[len(ids) - ids[::-1].index(EOS) :]
        writings = [_Writing(line.copy(), len(self.tokenizer.decode(line))) for _ in range(samples)]
        sampler = Sampler(sampling, np.array([row_key(sampling.seed, ids, i) for i in range(samples)], dtype=np.uint64))
        rows = list(range(samples))
        said = torch.tensor([ids] * samples, device=self.model.output.weight.device)  # (rows, T)
        state = self.model.start()
        newest = said[:, -self.context :]
        for step in range(max_tokens):
            state, logits = self._step(state, newest, said)
            tokens, log_probs = _choose(logits, sampler, rows, step, said)
            said = torch.cat((said, tokens[:, None]), dim=1)
            for row, token, log_prob in zip(rows, tokens.tolist(), log_probs.tolist(), strict=True):
                self._add(writings[row], token, log_prob, stops)
            yield writings
            open_rows = [place for place, row in enumerate(rows) if not writings[row].stopped]
            if not open_rows:
                return
            if len(open_rows) < len(rows):
                kept = torch.tensor(open_rows, device=said.device)
                state.reorder(kept)
                said, rows = said[kept], [rows[place] for place in open_rows]
            newest = said[:, -1:]

    def _step(self, state: LanguageState, newest: Tensor, said: Tensor) -> tuple[LanguageState, Tensor]:
        if state.length + newest.size(1) > self.context:
            # Full: the model goes on from the newer half of what it has seen.
            state, newest = self.model.start(), said[:, -max(1, self.context // 2) :]
        return state, self.model.step(state, newest)

    def _prompt_ids(self, prompt: str) -> list[int]:
        ids = [EOS]
        for number, line in enumerate(prompt.split("\n")):
            ids += ([EOS] if number else []) + self.tokenizer.encode(line)
        return ids

    def _add(self, writing: _Writing, token: int, log_prob: float, stops: tuple[str, ...]) -> None:
        writing.ids.append(token)
        writing.log_probs.append(log_prob)
        if token == EOS:
            writing.text += "\n"
            writing.lines, writing.line, writing.skipped = writing.text, [], 0
        else:
            writing.line.append(token)
            writing.text = writing.lines + self.tokenizer.decode(writing.line)[writing.skipped :]
        ends = [place for stop in stops if (place := writing.text.find(stop)) >= 0]
        if ends:
            writing.text, writing.stopped = writing.text[: min(ends)], True


def _choose(logits: Tensor, sampler: Sampler, rows: list[int], step: int, said: Tensor) -> tuple[Tensor, Tensor]:
    norm, raw = log_normaliser(logits), logits.clone()
    logits[:, : BOS + 1] = -torch.inf  # padding, unknown, begin of sentence
    tokens = sampler(logits, torch.tensor(rows), step, said if sampler.needs_history else None)
    return tokens, raw.gather(1, tokens[:, None]).squeeze(1) - norm


def _stops(stop: str | Sequence[str]) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    if "" in stops:
        raise UsageError("a stop string must not be empty")
    return stops


def _sampling(settings: dict[str, Any]) -> Sampling:
    try:
        return Sampling(**settings)
    except TypeError as error:
        raise UsageError(f"no such option: {error}") from error
