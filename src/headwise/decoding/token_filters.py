"""Filters that decide which tokens may come next. They set logits to -inf; log-probabilities are computed before."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Rule, Searched
from headwise.errors import UsageError
from headwise.text.tokenizer import BOS, EOS

_FORBIDDEN = float("-inf")
_NEVER = BOS + 1  # the first tokens: padding, unknown, begin of sentence


@dataclass(frozen=True)
class TokenFilters:
    """The filters of one batch. By default only padding, unknown and begin of sentence are forbidden."""

    min_length: int = 1
    no_repeat: int = 0  # no n-gram of this length occurs twice; 0 is off
    suppress: Tensor | None = None  # token ids
    prefixes: Tensor | None = None  # (B, longest), -1 where nothing is forced
    highest: int = 0  # the highest id in prefixes
    rules: tuple[Rule, ...] = ()  # further ones, of the kind of source; they come after all but prefixes

    @classmethod
    def of(cls, sources: Searched, options: SearchOptions) -> TokenFilters:
        """Builds the filters from the options of the call and the requests of its sentences."""
        suppress = torch.tensor(sorted(set(options.suppress)), dtype=torch.long, device=sources.limits.device)
        highest = max((token for request in sources.requests for token in request.prefix), default=0)
        return cls(options.min_length, options.no_repeat_ngram, suppress, _prefixes(sources), highest, sources.rules)

    def apply(self, logits: Tensor, step: int, sentences: Tensor | None, history: Tensor | None) -> Tensor:
        """Applies the filters in place to logits or log-probabilities (rows, V); sentences (rows,) are needed if
        `uses_sentences`, history (rows, step) if `uses_history`."""
        if step == 0:
            self._check(logits.size(1))
        forced = self._forced(logits, step, sentences)
        logits.narrow(1, 0, _NEVER).fill_(_FORBIDDEN)
        if step + 1 < self.min_length:
            logits.select(1, EOS).fill_(_FORBIDDEN)
        if self.suppress is not None and self.suppress.numel():
            logits.index_fill_(1, self.suppress, _FORBIDDEN)
        if history is not None:
            if self.no_repeat:
                forbid_repeats(logits, history, self.no_repeat)
            for rule in self.rules:
                rule(logits, step, history)
        if forced is not None:
            rows, tokens, kept = forced
            logits[rows] = _FORBIDDEN
            logits[rows, tokens] = kept
        return logits

    def _forced(self, logits: Tensor, step: int, sentences: Tensor | None) -> tuple[Tensor, Tensor, Tensor] | None:
        """Returns the rows whose next token is given by a prefix, these tokens, and their logits before any filter."""
        if self.prefixes is None or sentences is None or step >= self.prefixes.size(1):
            return None
        wanted = self.prefixes[sentences, step]
        rows = (wanted >= 0).nonzero().squeeze(1)
        return rows, wanted[rows], logits[rows, wanted[rows]]

    def _check(self, vocab: int) -> None:
        for token in () if self.suppress is None else self.suppress.tolist():
            if not 0 <= token < vocab or token == EOS:
                raise UsageError(
                    f"token {token} cannot be suppressed: give ids up to {vocab - 1}, but not {EOS} (end of sentence)"
                )
        if self.highest >= vocab:
            raise UsageError(f"token {self.highest} cannot be in a forced prefix: it is not a token of text")

    @property
    def uses_sentences(self) -> bool:
        return self.prefixes is not None

    @property
    def uses_history(self) -> bool:
        return self.no_repeat > 0 or bool(self.rules)


def _prefixes(sources: Searched) -> Tensor | None:
    """Returns the forced tokens (B, longest prefix), -1 where nothing is forced."""
    longest = max((len(request.prefix) for request in sources.requests), default=0)
    if longest == 0:
        return None
    for request in sources.requests:
        for token in request.prefix:
            if token <= BOS or token == EOS:
                raise UsageError(f"token {token} cannot be in a forced prefix: it is not a token of text")
    rows = [[*request.prefix, *[-1] * (longest - len(request.prefix))] for request in sources.requests]
    return torch.tensor(rows, device=sources.limits.device)


def forbid_repeats(logits: Tensor, history: Tensor, n: int) -> None:
    """Forbids every token that would complete an n-gram that has occurred before. history (rows, T)."""
    if history.size(1) < n:
        return
    ngrams = history.unfold(1, n, 1)  # (rows, T - n + 1, n)
    newest = history[:, history.size(1) - n + 1 :]  # (rows, n - 1)
    again = (ngrams[:, :, : n - 1] == newest[:, None]).all(dim=-1)  # (rows, T - n + 1)
    row, index = again.nonzero(as_tuple=True)
    tokens = ngrams[row, index, n - 1]
    text = tokens > EOS
    logits[row[text], tokens[text]] = _FORBIDDEN
