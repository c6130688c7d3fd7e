"""Sounds that tests make: tones, noise, and damaged WAV files."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray


def tone(seconds: float = 1.0, hertz: float = 440.0, rate: int = 16_000, loudness: float = 0.3) -> NDArray[np.float32]:
    time = np.arange(round(seconds * rate)) / rate
    return (loudness * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


def noise(seconds: float = 1.0, rate: int = 16_000, loudness: float = 0.1, seed: int = 0) -> NDArray[np.float32]:
    return (loudness * np.random.default_rng(seed).normal(size=round(seconds * rate))).astype(np.float32)


def save(file: Path, samples: NDArray[np.float32], rate: int = 16_000, **options: str) -> Path:
    soundfile.write(file, samples, rate, **options)
    return file


def wav_bytes(
    *, channels: int = 1, rate: int = 16_000, bits: int = 16, kind: int = 1, data: bytes = bytes(2000),
    declared: int | None = None,
) -> bytes:  # fmt: skip
    """A WAV file whose header says what it is told to; `declared`: the size of the data that it promises."""
    block = channels * bits // 8
    header = struct.pack("<IHHIIHH", 16, kind, channels, rate, rate * block & 0xFFFFFFFF, block, bits)
    promised = len(data) if declared is None else declared
    return (
        b"RIFF"
        + struct.pack("<I", 36 + len(data))
        + b"WAVEfmt "
        + header
        + b"data"
        + struct.pack("<I", promised)
        + data
    )
