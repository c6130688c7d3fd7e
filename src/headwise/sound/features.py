"""Log-mel features exactly as Whisper's (Radford et al. 2022, section 2.2), in numpy.

80 Slaney mel bins of a centred STFT (400 samples at 16 kHz, a frame every 160, Hann window), log10, clamped to 8 below
the loudest, scaled to about -1 … 1. Features are (frames, mels): 100 frames per second.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from headwise.errors import ShapeError
from headwise.sound.reading import RATE

Features = NDArray[np.float32]

WINDOW, HOP = 400, 160  # samples
FRAMES_PER_SECOND = RATE // HOP
RANGE = 2.0  # between the loudest feature and the quietest: 8 units of log10, divided by 4
# Small enough that temporaries stay in the cache and BLAS in one thread: four times as fast as all frames at once.
_FRAMES_AT_ONCE = 48


def log_mel(samples: NDArray[np.float32], mels: int = 80, *, frames: int | None = None) -> Features:
    """Computes features (frames, mels) of mono samples at 16 kHz.

    With `frames`, the sound is first padded with silence, or cut, to so many frames: Whisper pads to 3,000 (30 s).
    """
    if samples.ndim != 1:
        raise ShapeError(f"samples must have one axis (mono), not shape {samples.shape}")
    if frames is not None:
        samples = samples[: frames * HOP]
        samples = np.pad(samples, (0, frames * HOP - len(samples)))
    count = len(samples) // HOP
    if count < 2:  # reflection at the edges needs half a window of samples
        raise ShapeError(f"{len(samples)} samples are too few for features; give at least {2 * HOP}")
    centred = np.pad(np.asarray(samples, dtype=np.float32), WINDOW // 2, mode="reflect")
    windows = sliding_window_view(centred, WINDOW)[::HOP][:count]  # (frames, 400); Whisper drops the last frame
    hann, filters = _hann(), mel_filters(mels)
    features = np.empty((count, mels), dtype=np.float32)
    for start in range(0, count, _FRAMES_AT_ONCE):
        spectrum = np.fft.rfft(windows[start : start + _FRAMES_AT_ONCE] * hann)  # (frames, 201)
        power = spectrum.real**2 + spectrum.imag**2
        np.matmul(power, filters, out=features[start : start + _FRAMES_AT_ONCE])
    np.log10(np.maximum(features, 1e-10, out=features), out=features)
    np.maximum(features, features.max() - 8.0, out=features)
    features += 4.0
    features /= 4.0
    return features


def frames_of(samples: int) -> int:
    """Frames that begin within so many samples."""
    return -(-samples // HOP)


def pad_features(features: Features, frames: int) -> Features:
    """Appends silence: what `log_mel` gives for sound that was padded with zeros, except at the seam."""
    lacking = frames - len(features)
    if lacking <= 0:
        return features[:frames]
    silence = features.max() - RANGE
    return np.pad(features, ((0, lacking), (0, 0)), constant_values=silence)


@lru_cache(maxsize=8)
def mel_filters(mels: int = 80) -> NDArray[np.float32]:
    """Triangular filters (201, mels) on Slaney's mel scale: linear to 1 kHz, then logarithmic; each of area 1."""
    frequencies = np.linspace(0, RATE / 2, WINDOW // 2 + 1)  # of the FFT's bins
    edges = _hertz(np.linspace(_mel(0.0), _mel(RATE / 2), mels + 2))
    slopes = edges[None, :] - frequencies[:, None]  # (201, mels + 2)
    widths = np.diff(edges)
    rising, falling = -slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]
    triangles = np.maximum(0, np.minimum(rising, falling))
    filters: NDArray[np.float32] = (triangles * (2 / (edges[2:] - edges[:-2]))).astype(np.float32)
    return filters


def mel_centres(mels: int) -> NDArray[np.float64]:
    """The frequency of each bin's peak, in hertz."""
    return _hertz(np.linspace(_mel(0.0), _mel(RATE / 2), mels + 2))[1:-1]


_BREAK, _HERTZ_PER_MEL = 1000.0, 200 / 3  # where the scale becomes logarithmic, and its step below that
_STEP = np.log(6.4) / 27  # natural logarithm of the ratio between neighbours above


def _mel(hertz: float) -> float:
    if hertz < _BREAK:
        return hertz / _HERTZ_PER_MEL
    return float(_BREAK / _HERTZ_PER_MEL + np.log(hertz / _BREAK) / _STEP)


def _hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    above = mel - _BREAK / _HERTZ_PER_MEL
    return np.where(above < 0, mel * _HERTZ_PER_MEL, _BREAK * np.exp(_STEP * np.maximum(above, 0)))


@lru_cache(maxsize=1)
def _hann() -> NDArray[np.float32]:
    """Periodic, as in torch.stft."""
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
