"""Cuts sound of any length into windows that a model can read, and its answers into segments. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headwise.sound.activity import is_silent, leading_silence, quietest
from headwise.sound.reading import RATE, Samples
from headwise.text.speech_tokens import SECONDS_PER_TIMESTAMP

LONG_SILENCE = 2 * RATE  # samples: as much silence before the first sound is skipped
_BEFORE_SOUND = RATE // 5  # samples that are kept of it
_EARLIEST_CUT = 2 / 3  # of a window: where there are no timestamps, the cut is in the quietest place after this


@dataclass(frozen=True)
class Window:
    """A stretch of sound that is read at once."""

    start: int  # samples from the beginning of the sound
    samples: Samples
    last: bool  # the sound ends with it

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE


class WindowReader:
    """Reads sound from a position on, and forgets what is before it: memory does not grow with the length."""

    def __init__(self, blocks: Iterator[Samples], size: int, silence: float) -> None:
        self._blocks, self.size, self.silence = blocks, size, silence
        self._held: list[Samples] = []
        self._length = 0  # samples held
        self.position = 0
        self.skipped = 0  # samples that were silent

    def next(self) -> Window | None:
        """The window at the position; silent ones are skipped. None: the sound is over."""
        while True:
            samples = self._peek()
            last = len(samples) < self.size or self._ended()
            if not len(samples):
                return None
            if is_silent(samples, self.silence):
                # A word may begin in the last moment of a window.
                self._skip(len(samples) if last else len(samples) - _BEFORE_SOUND)
                continue
            quiet = leading_silence(samples, self.silence)
            if quiet >= LONG_SILENCE:
                self._skip(quiet - _BEFORE_SOUND)
                continue
            return Window(self.position, samples, last)

    def cut(self, window: Window) -> Window:
        """A window that ends in a pause, for models that do not tell when a word ended."""
        if window.last:
            return window
        size = len(window.samples)
        return Window(window.start, window.samples[: quietest(window.samples, int(size * _EARLIEST_CUT), size)], False)

    def advance(self, samples: int) -> None:
        """Moves on; at least by a little, so that every sound comes to an end."""
        count = min(max(samples, RATE // 50), self._length)
        self.position += count
        self._length -= count
        while count:
            first = self._held[0]
            if len(first) > count:
                self._held[0] = first[count:]
                return
            count -= len(first)
            self._held.pop(0)

    def _skip(self, samples: int) -> None:
        self.skipped += samples
        self.advance(samples)

    def _peek(self) -> Samples:
        while self._length < self.size and self._hold():
            pass
        held = np.concatenate(self._held) if self._held else np.zeros(0, np.float32)
        self._held = [held] if len(held) else []
        return held[: self.size]

    def _hold(self) -> bool:
        block = next(self._blocks, None)
        if block is not None:
            self._held.append(block)
            self._length += len(block)
        return block is not None

    def _ended(self) -> bool:
        """Whether nothing follows the window; a full window may be the last one."""
        while self._length == self.size:
            if not self._hold():
                return True
        return self._length < self.size


@dataclass(frozen=True)
class Cue:
    """A part of a window's tokens, and when it was said: seconds from the beginning of the window."""

    start: float
    end: float
    tokens: tuple[int, ...]


def cues_of(tokens: Sequence[int], begin: int, window: Window) -> tuple[list[Cue], int]:
    """Splits tokens at pairs of timestamps; also returns how many samples of the window are done with.

    Timestamps are the tokens from `begin` on. A window that ends within a segment is done with up to the end of the
    segment before, so that the next window begins there.
    """
    timed = [token >= begin for token in tokens]
    pairs = [place for place in range(1, len(tokens)) if timed[place - 1] and timed[place]]
    closed = len(tokens) > 1 and timed[-1] and not timed[-2]  # the last segment has its end, and nothing follows

    def seconds(token: int) -> float:
        return min((token - begin) * SECONDS_PER_TIMESTAMP, window.seconds)

    def text(part: Sequence[int]) -> tuple[int, ...]:
        return tuple(token for token in part if token < begin)

    if not pairs:
        times = [seconds(token) for token in tokens if token >= begin]
        end = times[-1] if times and times[-1] > times[0] else window.seconds
        return [Cue(times[0] if times else 0.0, end, text(tokens))], len(window.samples)
    cuts = [0, *pairs, *([len(tokens)] if closed else [])]
    cues = [
        Cue(seconds(tokens[start]) if timed[start] else 0.0, seconds(tokens[stop - 1]), text(tokens[start:stop]))
        for start, stop in pairwise(cuts)
    ]
    if closed:
        return cues, len(window.samples)
    return cues, round(seconds(tokens[pairs[-1] - 1]) * RATE)
