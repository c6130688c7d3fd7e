"""Varies recordings: speed, noise, SpecAugment. What an item becomes is a pure function of (seed, epoch, item).

All of it works on log-mel features, which is cheap and can be done anew in every epoch: a change of speed stretches the
time axis and shifts the mel axis (as a changed pitch does), and noise is added to the powers that features stand for.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headwise.config.sound import Sound
from headwise.sound.features import RANGE, Features, mel_centres

_PURPOSE = 7  # keeps these draws apart from others of the same seed and epoch
_NOISE_SPAN = 40.0  # decibels between the noisiest draw and one that is hardly heard


def augment(features: Features, settings: Sound, seed: int, epoch: int, item: int) -> Features:
    """Returns the features (frames, mels) that the item has in this epoch; `varied_frames` says how many frames."""
    rng = _generator(seed, epoch, item)
    factor, ratio, tilt = _factor(settings, rng), rng.uniform(0, 1), rng.uniform(-1, 1)
    if settings.speed:
        features = changed_speed(features, factor)
    if settings.noise:
        features = with_noise(features, settings.noise + _NOISE_SPAN * ratio, tilt, rng)
    return masked(features, settings, rng)


def varied_frames(frames: int, settings: Sound, seed: int, epoch: int, item: int) -> int:
    """How many frames an item of so many has in this epoch, without computing them."""
    return _stretched(frames, _factor(settings, _generator(seed, epoch, item))) if settings.speed else frames


def _generator(seed: int, epoch: int, item: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch, item, _PURPOSE))))


def _factor(settings: Sound, rng: np.random.Generator) -> float:
    return 1 + settings.speed * rng.uniform(-1, 1)


def _stretched(frames: int, factor: float) -> int:
    return max(2, round(frames / factor))


def changed_speed(features: Features, factor: float) -> Features:
    """Plays faster (factor > 1) or slower, as a tape does: duration and pitch change together (Ko et al. 2015)."""
    frames, mels = features.shape
    places = np.arange(_stretched(frames, factor)) * factor
    low = np.minimum(places.astype(np.int64), frames - 1)
    share = (places - low).clip(0, 1).astype(np.float32)[:, None]
    stretched = features[low] * (1 - share) + features[np.minimum(low + 1, frames - 1)] * share
    lower, higher, part = _warp(mels, round(factor, 3))
    warped: Features = stretched[:, lower] * (1 - part) + stretched[:, higher] * part
    return warped


@lru_cache(maxsize=2048)
def _warp(mels: int, factor: float) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """For each bin, the two bins between which its energy was before the pitch changed, and how far between."""
    centres = mel_centres(mels)
    place = np.interp(centres / factor, centres, np.arange(mels))
    low = place.astype(np.int64)
    return low, np.minimum(low + 1, mels - 1), (place - low).astype(np.float32)


def with_noise(features: Features, decibels: float, tilt: float, rng: np.random.Generator) -> Features:
    """Adds noise whose mean power is `decibels` below that of the recording.

    `tilt` shapes it, from -1 (low frequencies, a rumble) over 0 (equal in all bins) to 1 (high ones, a hiss).
    """
    power = np.power(10.0, 4 * features - 4)  # undoes the scaling and the logarithm
    shape = np.power(10.0, tilt * np.linspace(-1, 1, features.shape[1]))
    noise = rng.gamma(4.0, 0.25, features.shape) * shape  # mean 1: the power of a bin fluctuates, as real noise does
    noise *= power.mean() * 10 ** (-decibels / 10) / shape.mean()
    noisy = (np.log10(np.maximum(power + noise, 1e-10)) + 4) / 4
    louder: Features = np.maximum(noisy, noisy.max() - RANGE).astype(np.float32)
    return louder


def masked(features: Features, settings: Sound, rng: np.random.Generator) -> Features:
    """SpecAugment (Park et al. 2019): hides stretches of time and bands of frequencies behind the mean."""
    frames, mels = features.shape
    hidden = features.copy()
    mean = features.mean()
    for _ in range(settings.time_masks):
        start, stop = _span(frames, settings.time_width, rng)
        hidden[start:stop] = mean
    for _ in range(settings.frequency_masks):
        start, stop = _span(mels, settings.frequency_width, rng)
        hidden[:, start:stop] = mean
    return hidden


def _span(size: int, share: float, rng: np.random.Generator) -> tuple[int, int]:
    width = int(rng.integers(0, int(size * share) + 1))
    start = int(rng.integers(0, size - width + 1))
    return start, start + width
