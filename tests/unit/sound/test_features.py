"""Log-mel features: shapes, silence, and what padding does. Their equality with Whisper's is in tests/parity."""

from __future__ import annotations

import numpy as np
import pytest
from sounds import noise, tone

from headwise.errors import ShapeError
from headwise.sound.features import RANGE, frames_of, log_mel, mel_centres, mel_filters, pad_features


def test_there_are_a_hundred_frames_per_second() -> None:
    assert log_mel(noise(2.5)).shape == (250, 80)
    assert log_mel(noise(2.5), 128, frames=300).shape == (300, 128)
    assert log_mel(noise(2.5), frames=100).shape == (100, 80)
    assert [frames_of(n) for n in (0, 1, 160, 161)] == [0, 1, 1, 2]


def test_a_tone_is_loudest_in_the_bin_of_its_frequency() -> None:
    for hertz in (300.0, 1200.0, 5000.0):
        features = log_mel(tone(1.0, hertz))
        nearest = int(np.abs(mel_centres(80) - hertz).argmin())
        assert abs(int(features.mean(axis=0).argmax()) - nearest) <= 1


def test_long_and_short_stretches_give_the_same() -> None:
    samples = noise(3.0)
    whole = log_mel(samples)
    assert np.abs(log_mel(samples[:16_000])[:90] - whole[:90]).max() < 1e-5


def test_padding_features_is_padding_the_sound() -> None:
    samples = noise(1.0) * np.linspace(1, 0, 16_000, dtype=np.float32)
    padded, sound = pad_features(log_mel(samples, frames=102), 300), log_mel(samples, frames=300)
    assert padded.shape == sound.shape
    assert np.abs(padded - sound).max() < 1e-6
    assert sound.max() - sound.min() <= RANGE + 1e-6
    assert np.array_equal(pad_features(padded, 50), padded[:50])


def test_every_filter_has_area_one() -> None:
    filters = mel_filters(80)
    assert filters.shape == (201, 80)
    # Narrow filters have few samples of their triangle; the wide ones show the area.
    assert np.abs(filters[:, 41:].sum(axis=0) * 40 - 1).max() < 0.02


def test_what_has_no_frames_is_refused() -> None:
    with pytest.raises(ShapeError, match="too few"):
        log_mel(np.zeros(100, np.float32))
    with pytest.raises(ShapeError, match="mono"):
        log_mel(np.zeros((2, 1000), np.float32))
