"""Tells how much of its required phrases an output contains. Does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headwise.decoding.options import Request, RequiredPhrase


class _Progress(NamedTuple):
    """How much of the required phrases a scan from left to right has found."""

    at: int  # where the scan goes on
    end: int  # where the last complete phrase ends
    left: tuple[int, ...]  # how often each kind of phrase is still missing
    cost: int  # tokens of all that is missing


class Requirements:
    """Tracks how much of a sentence's required phrases a sequence of tokens contains.

    Equal phrases are counted as one kind, and a sequence is scanned from where its beginning, which a search asks for
    first, can no longer change. So a step takes no longer for a long output or for a phrase that is required often.
    """

    def __init__(self, request: Request) -> None:
        self.edges, self.prefix_length = request.edges, len(request.prefix)
        # An ordered phrase is a kind of its own each time, since only the first that is missing counts.
        kinds: dict[tuple[RequiredPhrase, int], int] = {}
        for place, phrase in enumerate(request.phrases):
            key = phrase, place if phrase.ordered else -1
            kinds[key] = kinds.get(key, 0) + 1
        self.phrases = [phrase for phrase, _ in kinds]
        self._ordered = [kind for kind, phrase in enumerate(self.phrases) if phrase.ordered]
        spellings = [(kind, spelling) for kind, phrase in enumerate(self.phrases) for spelling in phrase.spellings]
        self._spelt = frozenset(token for _, spelling in spellings for token in spelling)
        self._by_first: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        for kind, spelling in sorted(spellings, key=lambda pair: -len(pair[1])):  # the longest that fits counts
            self._by_first.setdefault(spelling[0], []).append((kind, spelling))
        self._longest = max((len(spelling) for _, spelling in spellings), default=0)
        cost = sum(phrase.cost * count for (phrase, _), count in kinds.items())
        self._nothing = _Progress(0, 0, tuple(kinds.values()), cost)
        # What cannot change any more in sequences of one length, and in those that are one token shorter.
        self._settled: dict[tuple[int, ...], _Progress] = {}
        self._before: dict[tuple[int, ...], _Progress] = {}
        self._length = 0

    def needed(self, tokens: Sequence[int]) -> int:
        """Returns the number of further tokens that suffice to complete every phrase; 0 if all are complete."""
        return self._needed(self._settle(tokens), tokens)

    def next_tokens(self, tokens: Sequence[int]) -> set[int]:
        """Returns the tokens that begin or continue a phrase."""
        found = self._scan(self._settle(tokens), tokens, len(tokens))
        starts = {
            first
            for first, spellings in self._by_first.items()
            if self._may_begin(tokens, len(tokens), first) and any(self._ready(found, kind) for kind, _ in spellings)
        }
        return starts | set(self._open(tokens, found))

    def after_each(self, tokens: list[int], candidates: Sequence[int]) -> list[int]:
        """Returns `needed` for the tokens followed by each of the candidates."""
        settled = self._settle(tokens)
        found = self._scan(settled, tokens, len(tokens))
        # A token that is in no phrase only breaks off a phrase in progress; it can undo a complete phrase only directly
        # after its end.
        separate = found.end < len(tokens) or not tokens
        return [
            found.cost if separate and token not in self._spelt else self._needed(settled, [*tokens, token])
            for token in candidates
        ]

    def _needed(self, settled: _Progress, tokens: Sequence[int]) -> int:
        found = self._scan(settled, tokens, len(tokens))
        return min(self._open(tokens, found).values(), default=found.cost)

    def _settle(self, tokens: Sequence[int]) -> _Progress:
        """Scans as far as further tokens cannot change what is found."""
        if len(tokens) != self._length:
            follows = len(tokens) == self._length + 1
            self._before, self._settled, self._length = self._settled if follows else {}, {}, len(tokens)
        known = tuple(tokens)
        if known not in self._settled:
            start = self._before.get(known[:-1], self._nothing)
            self._settled[known] = self._scan(start, tokens, len(tokens) - self._longest)
        return self._settled[known]

    def _scan(self, start: _Progress, tokens: Sequence[int], stop: int) -> _Progress:
        """Goes on from `start` up to the position `stop`."""
        found, at = start, start.at
        while at < stop and found.cost:
            for kind, spelling in self._by_first.get(tokens[at], ()):
                if self._ready(found, kind) and self._stands(tokens, at, self.phrases[kind], spelling):
                    at += len(spelling)
                    left = (*found.left[:kind], found.left[kind] - 1, *found.left[kind + 1 :])
                    found = _Progress(at, at, left, found.cost - self.phrases[kind].cost)
                    break
            else:
                at += 1
        return found._replace(at=at)

    def _ready(self, found: _Progress, kind: int) -> bool:
        """Tells whether a phrase is missing and may come next: of the ordered ones only the first that is missing."""
        if not found.left[kind] or not self.phrases[kind].ordered:
            return bool(found.left[kind])
        return kind == next(first for first in self._ordered if found.left[first])

    def _open(self, tokens: Sequence[int], found: _Progress) -> dict[int, int]:
        """Finds phrases that the last tokens begin; maps the next token of each to the number of tokens needed."""
        following: dict[int, int] = {}
        for start in range(max(found.end, len(tokens) - self._longest + 1), len(tokens)):
            done = len(tokens) - start
            for kind, spelling in self._by_first.get(tokens[start], ()):
                begun = len(spelling) > done and tuple(tokens[start:]) == spelling[:done]
                if begun and self._ready(found, kind) and self._may_begin(tokens, start, spelling[0]):
                    needed = found.cost - self.phrases[kind].cost + len(spelling) - done
                    following[spelling[done]] = min(needed, following.get(spelling[done], needed))
        return following

    def _stands(self, tokens: Sequence[int], at: int, phrase: RequiredPhrase, spelling: tuple[int, ...]) -> bool:
        end = at + len(spelling)
        if tuple(tokens[at:end]) != spelling or not self._may_begin(tokens, at, spelling[0]):
            return False
        return not phrase.whole or end == len(tokens) or tokens[end] not in self.edges.continues

    def _may_begin(self, tokens: Sequence[int], at: int, first: int) -> bool:
        return at == 0 or first not in self.edges.continues or tokens[at - 1] not in self.edges.unfinished
