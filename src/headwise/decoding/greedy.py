"""One row a sentence, one token a step: greedy search, and sampling, which only chooses the token differently.

tokens ← begin of sentence
until every sentence has ended:
    logits ← model.step(tokens)
    tokens, log_probs ← choose(logits)
    sentences that ended leave the batch
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headwise.decoding import loops
from headwise.decoding.hypothesis import Hypothesis, Stopped
from headwise.decoding.interface import Halves, worth_dropping
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_filters import Restrictions
from headwise.decoding.topk import NextTokens, likeliest
from headwise.text.tokenizer import BOS, EOS

# Sentences leave the batch when so many of its rows are done: the past of the others is copied then.
_DROP_SHARE = 0.2

# (logits of what may come, sentence of each row, step, tokens so far or None) -> a token a row
Choose = Callable[[Tensor, Tensor, int, Tensor | None], Tensor]


@dataclass
class _Output:
    """What a sentence has said so far, the end of sentence included, and why it stopped."""

    limit: int
    guarded: bool
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

    def hypothesis(self, alpha: float, scored: bool) -> Hypothesis:
        kept = loops.kept_length(self.tokens) if self.stopped == "loop" else len(self.tokens)
        spoken, stopped = self.tokens[: kept - (self.stopped == "eos")], self.stopped or "length"
        if not scored:
            return Hypothesis(tuple(spoken), math.nan, (), stopped)
        return Hypothesis.of(spoken, self.log_probs[:kept], stopped, alpha)


def greedy_search(
    model: Halves,
    sources: Sources,
    options: SearchOptions,
    choose: Choose | None = None,
    *,
    needs_history: bool = False,
    scored: bool = True,
) -> list[Hypothesis]:
    """One hypothesis a sentence. Without `choose`, the likeliest token at each step, which needs no `scored`."""
    device = sources.ids.device
    state = model.start(model.encode(sources.ids, sources.lengths))
    pick = _Pick(NextTokens(model), sources, options, choose, needs_history, scored)
    outputs = [_Output(*each) for each in zip(sources.limits.tolist(), sources.guarded.tolist(), strict=True)]
    rows = list(range(len(sources)))  # which sentence each row is
    tokens = torch.full((len(rows),), BOS, device=device)
    for step in range(max(output.limit for output in outputs)):
        tokens, log_probs = pick(model.advance(state, tokens), [outputs[row] for row in rows], rows, step)
        for row, token, log_prob in zip(rows, tokens.tolist(), log_probs.tolist(), strict=True):
            if outputs[row].stopped is None:
                outputs[row].add(token, log_prob)
        open_rows = [place for place, row in enumerate(rows) if outputs[row].stopped is None]
        if not open_rows:
            break
        if worth_dropping(len(open_rows), len(rows), _DROP_SHARE):
            kept = torch.tensor(open_rows, device=device)
            state.reorder(kept)
            rows, tokens = [rows[place] for place in open_rows], tokens[kept]
    return [output.hypothesis(options.length_penalty, scored) for output in outputs]


class _Pick:
    """Which token comes next in each row, and its log-probability; its logit where nothing is to be scored."""

    def __init__(
        self,
        score: NextTokens,
        sources: Sources,
        options: SearchOptions,
        choose: Choose | None,
        needs_history: bool,
        scored: bool,
    ) -> None:
        self.score, self.choose, self.scored = score, choose, scored
        self.restrictions = Restrictions(sources, options)
        self.needs_history = needs_history or self.restrictions.uses_history
        self.needs_sentences = choose is not None or self.restrictions.uses_sentences

    def __call__(self, states: Tensor, outputs: list[_Output], rows: list[int], step: int) -> tuple[Tensor, Tensor]:
        device = states.device
        sentences = history = None
        if self.needs_sentences:
            sentences = torch.tensor(rows, device=device)
        if self.needs_history:  # (rows, step); sentences that are over have said less, and no matter what
            said = [[*output.tokens, *[EOS] * (step - len(output.tokens))] for output in outputs]
            history = torch.tensor(said, dtype=torch.long, device=device).view(len(rows), step)
        if self.choose is None or sentences is None:
            scores = self.score(states)[1] if self.scored else self.score.logits(states)
            highest, tokens = likeliest(self.restrictions.apply(scores, step, sentences, history))
            return tokens, highest
        logits, log_probs = self.score(states)
        tokens = self.choose(self.restrictions.apply(logits, step, sentences, history), sentences, step, history)
        return tokens, log_probs.gather(1, tokens[:, None]).squeeze(1)
