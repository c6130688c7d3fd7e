"""Whisper's settings: presets, and how sound is padded."""

from __future__ import annotations

import pytest

from headwise.config.families.whisper import FAMILY, WhisperSettings
from headwise.errors import ShapeError


def test_presets_have_the_sizes_of_the_paper() -> None:
    found = {name: FAMILY.resolve(name, {}) for name in FAMILY.presets}
    sizes = {name: (s.encoder_layers, s.model_dim, s.num_heads) for name, s in found.items()}  # type: ignore[attr-defined]
    assert sizes["whisper-tiny"] == (4, 384, 6)
    assert sizes["whisper-base"] == (6, 512, 8)
    assert sizes["whisper-small"] == (12, 768, 12)
    assert found["whisper-micro"].window < found["whisper-tiny"].window == 3000  # type: ignore[attr-defined]


def test_five_seconds_are_padded_to_thirty_only_by_published_sizes() -> None:
    micro = WhisperSettings.of(FAMILY.presets["whisper-micro"])
    assert WhisperSettings.of({}).padded(500) == 3000
    assert [micro.padded(frames) for frames in (0, 1, 50, 51, 480, 1000, 2000)] == [50, 50, 50, 100, 500, 1000, 1000]


def test_settings_that_contradict_each_other_are_refused() -> None:
    for wrong in (
        {"padding": 600, "source_positions": 500},
        {"model_dim": 7},
        {"source_positions": 10**9},
        {"mels": 0},
    ):
        with pytest.raises(ShapeError):
            WhisperSettings.of(wrong)
