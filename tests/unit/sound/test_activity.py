"""Silence is found by energy."""

from __future__ import annotations

import numpy as np
from sounds import noise, tone

from headwise.sound.activity import is_silent, leading_silence, levels, quietest


def test_levels_are_decibels_below_full_scale() -> None:
    found = levels(tone(1.0, loudness=1.0))
    assert len(found) == 50
    assert np.abs(found - 10 * np.log10(0.5)).max() < 0.1


def test_quiet_noise_is_silence_and_a_short_word_is_not() -> None:
    quiet = noise(10.0, loudness=1e-4)
    assert is_silent(quiet)
    assert is_silent(np.zeros(0, np.float32))
    assert not is_silent(quiet, silence=-90)
    quiet[50_000:52_000] += tone(0.125)
    assert not is_silent(quiet)
    assert leading_silence(quiet) == 49_920  # the beginning of the 20 ms in which the word begins
    assert leading_silence(np.zeros(1000, np.float32)) == 1000


def test_the_quietest_place_is_the_pause() -> None:
    samples = noise(10.0)
    samples[96_000:104_000] *= 0.01
    assert 96_000 <= quietest(samples, 80_000, 160_000) <= 104_000
    assert quietest(samples, 0, 1000) == 500
