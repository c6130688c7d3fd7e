"""Variations of recordings: reproducible, different in each epoch, and what their names say."""

from __future__ import annotations

import numpy as np
from sounds import noise, tone

from headwise.config.sound import Sound
from headwise.sound.augment import augment, changed_speed, masked, with_noise
from headwise.sound.features import log_mel

EVERYTHING, NOTHING = Sound(), Sound(speed=0, noise=0, time_masks=0, frequency_masks=0)


def test_an_item_is_a_pure_function_of_seed_epoch_and_item() -> None:
    features = log_mel(noise(1.0))
    first = augment(features, EVERYTHING, 1, 2, 3)
    assert np.array_equal(first, augment(features, EVERYTHING, 1, 2, 3))
    for other in ((9, 2, 3), (1, 9, 3), (1, 2, 9)):
        changed = augment(features, EVERYTHING, *other)
        assert changed.shape != first.shape or not np.array_equal(changed, first)
    assert np.array_equal(augment(features, NOTHING, 1, 2, 3), features)


def test_speed_on_features_is_speed_on_samples() -> None:
    samples = np.concatenate([tone(0.25, hertz) for hertz in (350, 2600, 900, 1700, 500, 1200, 3000, 700)])
    for factor in (0.85, 1.15):
        places = np.arange(round(len(samples) / factor)) * factor
        played = np.interp(places, np.arange(len(samples)), samples).astype(np.float32)
        expected, found = log_mel(played), changed_speed(log_mel(samples), factor)
        assert abs(len(expected) - len(found)) <= 1
        frames = min(len(expected), len(found))
        # The loudest bin of each frame moves as the pitch does, where stretching the time alone would leave it.
        stretched = log_mel(samples)[np.minimum((np.arange(frames) * factor).astype(int), 199)]
        right, wrong = (
            np.abs(expected[:frames].argmax(axis=1) - other[:frames].argmax(axis=1)) for other in (found, stretched)
        )
        assert np.mean(right <= 1) > 0.9
        assert np.mean(wrong <= 1) < 0.4


def test_noise_has_the_ratio_that_was_asked_for() -> None:
    features = log_mel(tone(2.0))
    power = np.power(10.0, 4 * features - 4)
    for decibels in (0.0, 20.0):
        noisy = with_noise(features, decibels, 0.0, np.random.default_rng(0))
        added = np.power(10.0, 4 * noisy - 4).mean() - power.mean()
        assert abs(10 * np.log10(power.mean() / added) - decibels) < 0.5


def test_tilted_noise_is_in_low_or_high_bins() -> None:
    quiet = np.zeros((200, 80), np.float32)
    low, high = (with_noise(quiet, 0.0, tilt, np.random.default_rng(0)) for tilt in (-1, 1))
    assert low[:, :20].mean() > low[:, -20:].mean() + 0.1
    assert high[:, -20:].mean() > high[:, :20].mean() + 0.1


def test_masks_hide_at_most_what_the_settings_allow() -> None:
    features = log_mel(noise(4.0))
    settings = Sound(time_masks=2, time_width=0.1, frequency_masks=1, frequency_width=0.2)
    hidden_frames, hidden_bins = [], []
    for seed in range(20):
        changed = masked(features, settings, np.random.default_rng(seed)) != features
        hidden_frames.append(int(changed.all(axis=1).sum()))
        hidden_bins.append(int(changed.all(axis=0).sum()))
    assert 0 < max(hidden_frames) <= 80
    assert 0 < max(hidden_bins) <= 16
