"""The loop that generates token by token: greedy search and sampling, for translation and for language models.

tokens ← begin of sentence, or a prompt
until every output is done:
    states ← stepper.advance(state, tokens)
    tokens, log_probs ← pick(logits of the states)
    each output gets its token; those that are done leave the batch
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from headwise.cancellation import check_cancelled
from headwise.decoding import loops
from headwise.decoding.hypothesis import Hypothesis, Stopped
from headwise.decoding.options import SearchOptions
from headwise.decoding.sampling import Sampler
from headwise.decoding.source_batches import Searched
from headwise.decoding.token_filters import TokenFilters
from headwise.decoding.topk import log_normaliser
from headwise.models.interface import Stepper
from headwise.text.tokenizer import EOS


class Output(Protocol):
    """The output of one row."""

    def add(self, token: int, log_prob: float) -> None: ...

    @property
    def done(self) -> bool: ...


@dataclass(frozen=True)
class Picker:
    """Picks the next token of each row; also returns its log-probability before any filter (NaN if not `scored`)."""

    filters: TokenFilters
    sampler: Sampler | None = None  # None picks the most likely token
    scored: bool = True

    @property
    def needs_history(self) -> bool:
        return self.filters.uses_history or (self.sampler is not None and self.sampler.needs_history)

    def __call__(self, logits: Tensor, rows: Sequence[int], step: int, history: Tensor | None) -> tuple[Tensor, Tensor]:
        """Overwrites the logits (rows, V); `rows` has the index of each row's output."""
        norm = log_normaliser(logits) if self.scored else math.nan
        sentences = torch.tensor(rows, device=logits.device) if self.filters.uses_sentences else None
        logits = self.filters.apply(logits, step, sentences, history)
        if self.sampler is None:
            highest, tokens = logits.max(dim=-1)
            return tokens, highest - norm
        tokens = self.sampler(logits, rows, step, history)
        return tokens, logits.gather(1, tokens[:, None]).squeeze(1) - norm


@dataclass
class TokenLoop:
    """Adds one token per row and step to `outputs`. `tokens` are what the stepper reads next."""

    stepper: Stepper
    state: Any
    tokens: Tensor  # (rows,), or a prompt (rows, T) to begin with
    outputs: Sequence[Output]
    pick: Picker
    before: Sequence[int] = ()  # tokens that count as history of every row
    rows: list[int] = field(default_factory=list)  # indices of the unfinished outputs
    written: list[list[int]] = field(default_factory=list)  # the tokens of each output so far
    steps: int = 0

    def __post_init__(self) -> None:
        self.rows, self.written = list(range(len(self.outputs))), [[] for _ in self.outputs]

    def step(self) -> None:
        check_cancelled()
        logits = self.stepper.output.logits(self.stepper.advance(self.state, self.tokens))
        if logits.size(0) < len(self.rows):  # the rows share a prompt, which was read once
            self._reorder([0] * len(self.rows))
            logits = logits.expand(len(self.rows), -1).clone()
        history = self._history(logits.device) if self.pick.needs_history else None
        self.tokens, log_probs = self.pick(logits, self.rows, self.steps, history)
        self.steps += 1
        for row, token, log_prob in zip(self.rows, self.tokens.tolist(), log_probs.tolist(), strict=True):
            self.outputs[row].add(token, log_prob)
            self.written[row].append(token)
        going = [place for place, row in enumerate(self.rows) if not self.outputs[row].done]
        if len(going) < len(self.rows):
            self.rows = [self.rows[place] for place in going]
            if going:
                self.tokens = self.tokens[self._reorder(going)]

    def restart(self, state: Any, tokens: Tensor) -> None:
        """Continues with another state, which reads `tokens` (rows, T) first."""
        self.state, self.tokens = state, tokens

    def _reorder(self, places: list[int]) -> Tensor:
        indices = torch.tensor(places, device=self.tokens.device)
        self.state.reorder(indices)
        return indices

    def _history(self, device: torch.device) -> Tensor:
        """Returns the tokens so far, (rows, T)."""
        tokens = [[*self.before, *self.written[row]] for row in self.rows]
        return torch.tensor(tokens, dtype=torch.long, device=device).view(len(tokens), -1)


@dataclass
class TargetOutput:
    """A translation in progress, including its end of sentence, and why it stopped."""

    limit: int
    guarded: bool  # whether to stop the output if it is caught in a loop
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    stopped: Stopped | None = None

    def add(self, token: int, log_prob: float) -> None:
        self.tokens.append(token)
        self.log_probs.append(log_prob)
        length = len(self.tokens)
        if token == EOS:
            self.stopped = "eos"
        elif self.guarded and loops.due(length) and loops.kept_length(self.tokens) < length:
            self.stopped = "loop"
        elif length >= self.limit:
            self.stopped = "length"

    @property
    def done(self) -> bool:
        return self.stopped is not None

    def hypothesis(self, alpha: float, scored: bool) -> Hypothesis:
        kept = loops.kept_length(self.tokens) if self.stopped == "loop" else len(self.tokens)
        tokens, stopped = self.tokens[: kept - (self.stopped == "eos")], self.stopped or "length"
        if not scored:
            return Hypothesis(tuple(tokens), math.nan, (), stopped)
        return Hypothesis.of(tokens, self.log_probs[:kept], stopped, alpha)


def greedy_search(
    stepper: Stepper, sources: Searched, options: SearchOptions, sampler: Sampler | None = None, *, scored: bool = True
) -> list[Hypothesis]:
    """Decodes one hypothesis per sentence: takes the most likely token at each step, or a sampled one."""
    outputs = [TargetOutput(*each) for each in zip(sources.limits.tolist(), sources.guarded.tolist(), strict=True)]
    loop = TokenLoop(
        stepper,
        stepper.start(sources.inputs, 1),
        sources.prompt,
        outputs,
        Picker(TokenFilters.of(sources, options), sampler, scored),
    )
    while loop.rows:
        loop.step()
    return [output.hypothesis(options.length_penalty, scored) for output in outputs]
