"""One row a sentence, one token a step: greedy search, and sampling, which only chooses the token differently.

tokens ← begin of sentence
until every sentence has ended:
    logits ← model.step(tokens)
    tokens, log_probs ← choose(logits)
    sentences that ended leave the batch
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.decoding import loops
from headwise.decoding.batching import Sources
from headwise.decoding.candidates import likeliest, log_normaliser
from headwise.decoding.hypothesis import Hypothesis, Stopped
from headwise.decoding.model import Model, worth_dropping
from headwise.decoding.options import SearchOptions
from headwise.decoding.restrictions import Restrictions
from headwise.text.tokenizer import BOS, EOS, PAD

# (logits of what may come, sentence of each row, step, tokens so far or None) -> a token a row
Choose = Callable[[Tensor, Tensor, int, Tensor | None], Tensor]

_OPEN, _EOS, _LENGTH, _LOOP = range(4)
_NAMES: tuple[Stopped, ...] = ("length", "eos", "length", "loop")


class Outputs:
    """What each sentence has said so far, (steps, B), and why it stopped."""

    def __init__(self, sources: Sources) -> None:
        size = (int(sources.limits.max()), len(sources))
        device = sources.ids.device
        self.tokens = torch.full(size, PAD, device=device)
        self.log_probs = torch.zeros(size, device=device)
        self.stopped = torch.full((len(sources),), _OPEN, device=device)
        self.lengths = torch.zeros(len(sources), dtype=torch.long, device=device)

    def add(self, step: int, sentences: Tensor, tokens: Tensor, log_probs: Tensor) -> None:
        self.tokens[step].index_copy_(0, sentences, tokens)
        self.log_probs[step].index_copy_(0, sentences, log_probs)

    def history(self, step: int, sentences: Tensor) -> Tensor:
        """(rows, step)"""
        return self.tokens[:step, sentences].T

    def close(self, step: int, sentences: Tensor, reason: int | Tensor) -> None:
        self.stopped[sentences] = reason
        self.lengths[sentences] = step + 1

    def hypotheses(self, alpha: float) -> list[Hypothesis]:
        found = []
        columns = zip(self.tokens.T.tolist(), self.log_probs.T.tolist(), strict=True)
        for (tokens, log_probs), length, code in zip(
            columns, self.lengths.tolist(), self.stopped.tolist(), strict=True
        ):
            kept = loops.kept_length(tokens[:length]) if code == _LOOP else length
            spoken = kept - 1 if code == _EOS else kept
            found.append(Hypothesis.of(tokens[:spoken], log_probs[:kept], _NAMES[code], alpha))
        return found


def greedy_search(
    model: Model, sources: Sources, options: SearchOptions, choose: Choose | None = None, needs_history: bool = False
) -> list[Hypothesis]:
    """One hypothesis a sentence. Without `choose`, the likeliest token at each step."""
    state = model.start(model.encode(sources.ids, sources.lengths))
    outputs = Outputs(sources)
    rows = torch.arange(len(sources), device=sources.ids.device)  # which sentence each row is
    limits, guarded = sources.limits, sources.guarded
    open_rows = torch.ones_like(rows, dtype=torch.bool)
    tokens = torch.full_like(rows, BOS)
    restrictions: Restrictions | None = None
    for step in range(int(limits.max())):
        logits = model.step(state, tokens)
        if restrictions is None:
            restrictions = Restrictions(sources, options, logits.size(1))
            needs_history = needs_history or restrictions.uses_history
        history = outputs.history(step, rows) if needs_history else None
        norm = log_normaliser(logits)
        if choose is None:
            chosen, tokens = likeliest(restrictions.apply(logits, step, rows, history))
        else:
            raw = logits.clone()
            tokens = choose(restrictions.apply(logits, step, rows, history), rows, step, history)
            chosen = raw.gather(1, tokens[:, None]).squeeze(1)
        outputs.add(step, rows, tokens, chosen - norm)
        done = _finished(outputs, step, rows, tokens, limits, guarded, open_rows)
        if done is None:
            continue
        open_rows &= ~done
        left = int(open_rows.sum())
        if left == 0:
            break
        if worth_dropping(left, len(rows)):
            kept = open_rows.nonzero().squeeze(1)
            state.reorder(kept)
            rows, tokens, limits, guarded, open_rows = (x[kept] for x in (rows, tokens, limits, guarded, open_rows))
    return outputs.hypotheses(options.length_penalty)


def _finished(
    outputs: Outputs, step: int, rows: Tensor, tokens: Tensor, limits: Tensor, guarded: Tensor, open_rows: Tensor
) -> Tensor | None:
    """Which open rows end with this step, noted in `outputs`; None when none does."""
    ended = tokens == EOS
    done = ended | (limits <= step + 1)
    stuck = loops.looping(outputs.history(step + 1, rows)) & guarded if loops.due(step + 1) else None
    if stuck is not None:
        done |= stuck
    done &= open_rows
    if not bool(done.any()):
        return None
    reason = torch.where(ended, _EOS, _LENGTH)
    if stuck is not None:
        reason = torch.where(stuck & ~ended, _LOOP, reason)
    outputs.close(step, rows[done], reason[done])
    return done
