"""Which tokens a speech model may write next (Radford et al. 2022, section 4.5), as rules on logits.

Timestamps come in pairs around a segment's text and never decrease: `<|0.00|> And so … <|7.60|><|7.60|> ask …`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.decoding.source_batches import Rule
from headwise.text.speech_tokens import LATEST_START, SpeechTokens
from headwise.text.tokenizer import EOS

_FORBIDDEN = float("-inf")


def speech_rules(tokens: SpeechTokens, timestamps: bool) -> tuple[Rule, ...]:
    """The rules of a model, with timestamps or without."""
    rules: list[Rule] = []
    timed = tokens.timestamps if timestamps else None
    if never := tokens.never():
        rules.append(Suppress(never))
    if tokens.timestamps is not None and timed is None:
        rules.append(NoTimestamps(tokens.timestamps))
    if tokens.suppress_first:
        rules.append(Suppress(sorted(set(tokens.suppress_first)), first=True))
    if timed is not None:
        rules.append(Timestamps(timed))
    return tuple(rules)


class Suppress:
    """These tokens are never written, or never as the first."""

    def __init__(self, ids: list[int], *, first: bool = False) -> None:
        self.ids, self.first = torch.tensor(ids, dtype=torch.long), first

    def __call__(self, logits: Tensor, step: int, history: Tensor) -> None:
        if step == 0 or not self.first:
            logits.index_fill_(1, self.ids.to(logits.device), _FORBIDDEN)


class NoTimestamps:
    """From `begin` on, tokens are times."""

    def __init__(self, begin: int) -> None:
        self.begin = begin

    def __call__(self, logits: Tensor, step: int, history: Tensor) -> None:
        logits[:, self.begin :] = _FORBIDDEN


class Timestamps:
    """A segment begins and ends with a time. Tokens below `begin` are text, or the end."""

    def __init__(self, begin: int) -> None:
        self.begin = begin

    def __call__(self, logits: Tensor, step: int, history: Tensor) -> None:
        begin = self.begin
        if step == 0:  # the first token is a time, and not a late one
            logits[:, :begin] = _FORBIDDEN
            logits[:, begin + LATEST_START + 1 :] = _FORBIDDEN
            return
        timed = history >= begin  # (rows, step)
        last = timed[:, -1]
        before = timed[:, -2] if step > 1 else torch.ones_like(last)
        ended = logits[:, EOS].clone()
        text, times = logits[:, :begin], logits[:, begin:]
        times[last & before] = _FORBIDDEN  # after a pair of times comes text
        opened = last & ~before  # after the time that ends a segment: the next one begins, or the window ends
        text[opened] = _FORBIDDEN
        logits[:, EOS] = torch.where(opened, ended, logits[:, EOS])
        # Times do not decrease, and a segment is longer than nothing.
        latest = torch.where(timed, history - begin, -1).amax(dim=1)  # (rows,); -1: there is none
        least = torch.where(opened, latest, latest + 1)
        early = torch.arange(times.size(1), device=logits.device) < least[:, None]
        times.masked_fill_(early, _FORBIDDEN)
        # If a time is likelier than any single word, all times together, it is a time.
        likelier = times.logsumexp(dim=1) > text.amax(dim=1)
        text[likelier] = _FORBIDDEN
