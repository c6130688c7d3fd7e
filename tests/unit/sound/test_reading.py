"""Sound files of all kinds become mono samples at 16 kHz, and bad ones get one clear line."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sounds import noise, save, tone, wav_bytes

from headwise.errors import DataError
from headwise.sound.reading import read_sound, sound_blocks, sound_info


def read(file: Path) -> np.ndarray:
    return read_sound(file, most_seconds=60)


def test_samples_of_wav_and_flac_are_those_that_were_written(tmp_path: Path) -> None:
    samples = np.round(noise(0.3) * 2**15) / 2**15  # what 16 bits can hold
    for name in ("a.wav", "a.flac"):
        assert np.array_equal(read(save(tmp_path / name, samples.astype(np.float32))), samples.astype(np.float32))


@pytest.mark.parametrize("name", ["a.ogg", "a.mp3"])
def test_lossy_formats_sound_alike(tmp_path: Path, name: str) -> None:
    samples = tone(1.0)
    found = read(save(tmp_path / name, samples))
    assert abs(len(found) - len(samples)) < 2000
    spectrum = np.abs(np.fft.rfft(found[:16_000]))
    assert abs(int(spectrum.argmax()) - 440) <= 1


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_any_rate_becomes_16_kilohertz(tmp_path: Path, rate: int) -> None:
    found = read(save(tmp_path / "a.wav", tone(2.0, rate=rate), rate))
    assert abs(len(found) - 32_000) <= 2
    assert np.abs(found[1000:-1000] - tone(2.0)[1000 : len(found) - 1000]).max() < 2e-3


def test_channels_are_mixed(tmp_path: Path) -> None:
    left, right = tone(0.5, 300), tone(0.5, 500)
    found = read(save(tmp_path / "a.wav", np.stack((left, right), axis=1), subtype="FLOAT"))
    assert np.abs(found - (left + right) / 2).max() < 1e-6


def test_blocks_are_what_is_read_at_once(tmp_path: Path) -> None:
    file = save(tmp_path / "a.wav", noise(3.3, rate=44_100), 44_100)
    blocks = list(sound_blocks(file))
    assert len(blocks) > 2
    assert np.array_equal(np.concatenate(blocks), read(file))


def test_the_header_alone_tells_the_length(tmp_path: Path) -> None:
    info = sound_info(save(tmp_path / "a.wav", noise(1.5, rate=8_000), 8_000))
    assert (info.seconds, info.rate, info.channels) == (1.5, 8_000, 1)


BAD = {
    "200 channels": (wav_bytes(channels=200, data=bytes(40_000)), "has 200 channels"),
    "2000 channels": (wav_bytes(channels=2000, data=bytes(40_000)), "Too many channels"),
    "no channels": (wav_bytes(channels=0), "is not a sound file"),
    "rate 0": (wav_bytes(rate=0), "is not a sound file"),
    "rate 10": (wav_bytes(rate=10), "has 10 samples per second"),
    "rate 2 billion": (wav_bytes(rate=2_000_000_000), "has 2,000,000,000 samples per second"),
    "zero length": (wav_bytes(data=b""), "has no samples"),
    "size 0": (wav_bytes(declared=0), "has no samples, as its header says"),
    "cut header": (wav_bytes()[:20], "is not a sound file"),
    "lying header": (wav_bytes(declared=10**9), "header promises 1,000,000,000 bytes of sound, but 2,000 are there"),
    "text": (b"hello world\n" * 100, "is not a sound file"),
    "empty": (b"", "is not a sound file"),
    "NaN": (
        wav_bytes(kind=3, bits=32, data=np.array([0] * 1600 + [np.nan], "<f4").tobytes()),
        "has a sample that is NaN or infinite, at 0.100 s",
    ),
    "infinite": (wav_bytes(kind=3, bits=32, data=np.array([np.inf], "<f4").tobytes()), "NaN or infinite, at 0.000 s"),
    "another scale": (
        wav_bytes(kind=3, bits=32, data=np.array([0, -32768], "<f4").tobytes()), "has samples up to 32768"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_gets_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    content, problem = BAD[name]
    file = tmp_path / "bad.wav"
    file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    assert problem in message
    assert "\n" not in message


def test_a_length_that_a_program_could_not_know_is_no_damage(tmp_path: Path) -> None:
    file = tmp_path / "piped.wav"
    file.write_bytes(wav_bytes(declared=2**32 - 1))
    assert len(read(file)) == 1000


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.mp3"])
def test_a_cut_file_is_refused_or_read_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    file = save(tmp_path / name, noise(8.0))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(DataError, match="cut off"):
        read(file)
    told: list[DataError] = []
    found = read_sound(file, most_seconds=60, on_cut=told.append)
    assert len(told) == 1
    assert 2.5 * 16_000 < len(found) < 4.5 * 16_000


def test_a_file_that_is_too_long_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is 2\.0 s long, but at most 1 s are read"):
        read_sound(save(tmp_path / "a.wav", noise(2.0)), most_seconds=1)


def test_what_is_not_an_ordinary_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.wav")
    for file, problem in (
        (tmp_path / "pipe.wav", "not an ordinary file"),
        (tmp_path / "none.wav", "no such file"),
        (tmp_path, "cannot be read"),
    ):
        with pytest.raises(DataError, match=problem):
            sound_info(file)
