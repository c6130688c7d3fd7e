"""Our log-mel features are those of transformers' WhisperFeatureExtractor."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sounds import noise, tone

from headwise.sound.features import log_mel
from headwise.sound.reading import read_sound

SOUNDS = {
    "noise": noise(7.3),
    "quiet noise": noise(4.0, loudness=1e-4),
    "a tone": tone(2.0),
    "silence": np.zeros(16_000, np.float32),
    "exactly one window": noise(30.0),
    "more than one window": noise(33.3),
    "a click": np.eye(1, 20_000, 7_000, dtype=np.float32)[0],
}


@pytest.mark.parametrize("mels", [80, 128])
@pytest.mark.parametrize("name", SOUNDS)
def test_features_equal_those_of_the_feature_extractor(name: str, mels: int) -> None:
    assert np.abs(log_mel(SOUNDS[name], mels, frames=3000) - theirs(SOUNDS[name], mels)).max() < 1e-4


def test_features_of_real_speech_equal_those_of_the_feature_extractor() -> None:
    folder = os.environ.get("HEADWISE_DATA")
    if not folder or not (Path(folder) / "speech/jfk.wav").is_file():
        pytest.skip("needs speech/jfk.wav in the folder that HEADWISE_DATA names")
    samples = read_sound(Path(folder) / "speech/jfk.wav", most_seconds=60)
    assert np.abs(log_mel(samples, frames=3000) - theirs(samples, 80)).max() < 1e-4


def theirs(samples: np.ndarray, mels: int) -> np.ndarray:
    from transformers import WhisperFeatureExtractor

    extractor = WhisperFeatureExtractor(feature_size=mels)
    features: np.ndarray = extractor(samples, sampling_rate=16_000, return_tensors="np")["input_features"][0]
    return features.T
