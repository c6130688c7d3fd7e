"""Where there is sound and where there is silence, by energy alone: speech models invent text for silence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwise.sound.reading import RATE, Samples

SILENCE = -60.0  # decibels below full scale; a quiet room at an ordinary gain is around -55
_FRAME = RATE // 50  # 20 ms
_QUIET_STRETCH = 10  # frames: a pause between words


def levels(samples: Samples) -> NDArray[np.float32]:
    """The level of each 20 ms, in decibels below full scale."""
    frames = np.pad(samples, (0, -len(samples) % _FRAME)).reshape(-1, _FRAME)
    power = np.einsum("ts,ts->t", frames, frames) / _FRAME
    decibels: NDArray[np.float32] = 10 * np.log10(np.maximum(power, 1e-20))
    return decibels


def is_silent(samples: Samples, silence: float = SILENCE) -> bool:
    """Whether no 20 ms reach `silence`."""
    return len(samples) == 0 or float(levels(samples).max()) < silence


def leading_silence(samples: Samples, silence: float = SILENCE) -> int:
    """Samples before the first 20 ms that reach `silence`; all of them if none do."""
    loud = np.flatnonzero(levels(samples) >= silence)
    return int(loud[0]) * _FRAME if len(loud) else len(samples)


def quietest(samples: Samples, start: int, stop: int) -> int:
    """The middle of the quietest 200 ms between two places: where to cut if a cut must be made."""
    power = np.power(10.0, levels(samples[start:stop]) / 10)
    if len(power) <= _QUIET_STRETCH:
        return (start + stop) // 2
    sums = np.convolve(power, np.ones(_QUIET_STRETCH), mode="valid")
    return min(stop, start + (int(sums.argmin()) + _QUIET_STRETCH // 2) * _FRAME)
