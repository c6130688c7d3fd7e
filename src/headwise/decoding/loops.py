"""The loop guard: stops an output that repeats the same few tokens again and again, and marks it as stopped.

Does not import torch: for engines with a search of their own, the guard is applied to the finished outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_CYCLE = 10  # tokens
LEAST_REPEATS = 4
LEAST_TOKENS = 16  # so that "ha ha ha ha" and "1 000 000 000" pass
_REPEATED = LEAST_TOKENS - LEAST_TOKENS // LEAST_REPEATS  # repeated tokens in the shortest loop
CHECK_EVERY = 8  # steps between checks; what is cut off does not depend on when the loop is found


def needed_tokens(cycle: int) -> int:
    """Returns how many tokens at the end of an output must repeat a cycle of this length to count as a loop."""
    return max(LEAST_REPEATS * cycle, -(-LEAST_TOKENS // cycle) * cycle)


def due(length: int) -> bool:
    """Whether to check for loops at this length."""
    return length >= LEAST_TOKENS and length % CHECK_EVERY == 0


def may_loop(tokens: Sequence[int]) -> bool:
    """Whether enough tokens are repeated for a loop: a quick check that rules one out for nearly all texts."""
    return len(tokens) >= LEAST_TOKENS and len(tokens) - len(set(tokens)) >= _REPEATED


def has_loop(sentence: Sequence[int]) -> bool:
    """Whether a cycle is repeated anywhere. If the source has a loop, the translation may too: its guard is off."""
    if not may_loop(sentence):
        return False
    for cycle in range(1, LONGEST_CYCLE + 1):
        run = cycle
        for here in range(cycle, len(sentence)):
            run = run + 1 if sentence[here] == sentence[here - cycle] else cycle
            if run >= needed_tokens(cycle):
                return True
    return False


def kept_length(tokens: Sequence[int]) -> int:
    """Returns how many tokens of a looping output are kept: up to the end of the first pass through the cycle."""
    if not may_loop(tokens):
        return len(tokens)
    for cycle in range(1, LONGEST_CYCLE + 1):
        needed = needed_tokens(cycle)
        if len(tokens) < needed or any(tokens[-i] != tokens[-i - cycle] for i in range(1, needed - cycle + 1)):
            continue
        start = len(tokens) - needed
        while start > 0 and tokens[start - 1] == tokens[start - 1 + cycle]:
            start -= 1
        return start + cycle
    return len(tokens)
