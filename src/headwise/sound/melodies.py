"""Generates the melodies of `headwise demo --task transcribe`: sounds of a few notes, and the names of the notes.

Each melody is played by an instrument of its own (other overtones, another attack), at its own speed, slightly out of
tune and with some noise, so that no two sounds are alike. No held-out melody has the notes of a training melody.
"""

from __future__ import annotations

import csv
import io
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from zlib import crc32

import numpy as np

from headwise.errors import WorkFailed
from headwise.files import write_whole
from headwise.sound.reading import Samples

NOTES = {"do": 523.25, "re": 587.33, "mi": 659.26, "fa": 698.46, "sol": 783.99, "la": 880.0, "ti": 987.77}  # hertz
RATE = 8_000
LONGEST = 5  # notes of a melody
SHORTEST_HELD_OUT = 3  # all melodies of one and two notes are trained on
HELD_OUT_SHARE = 4  # one of so many longer ones is held out
OVERTONES = 3


@dataclass(frozen=True)
class Melody:
    """A sound and the names of its notes."""

    text: str
    samples: Samples


def melodies(count: int, seed: int = 1, *, held_out: bool = False) -> Iterator[Melody]:
    """Draws melodies: for training of one to five notes, held out of three to five; the seed decides all."""
    return islice(_drawn(seed, held_out), count)


def _drawn(seed: int, held_out: bool) -> Iterator[Melody]:
    number = 0
    shortest = SHORTEST_HELD_OUT if held_out else 1
    while True:
        rng = np.random.default_rng((seed, held_out, number))
        number += 1
        notes = [str(note) for note in rng.choice(list(NOTES), rng.integers(shortest, LONGEST + 1))]
        if _is_held_out(notes) == held_out:
            yield Melody(" ".join(notes), play(notes, rng))


def _is_held_out(notes: list[str]) -> bool:
    return len(notes) >= SHORTEST_HELD_OUT and crc32(" ".join(notes).encode()) % HELD_OUT_SHARE == 0


def play(notes: list[str], rng: np.random.Generator) -> Samples:
    """Plays notes on an instrument that is drawn: loudness of overtones, attack, fading, tempo and tuning."""
    overtones = rng.uniform(0.1, 0.7, OVERTONES)
    attack, fading = rng.uniform(0.01, 0.03), rng.uniform(4, 9)  # seconds, and per second
    beat, tuning = rng.uniform(0.2, 0.3), rng.uniform(0.985, 1.015)
    parts = [np.zeros(round(RATE * rng.uniform(0.0, 0.1)))]
    for note in notes:
        time = np.arange(round(RATE * beat * rng.uniform(0.9, 1.1))) / RATE
        pitch = 2 * np.pi * NOTES[note] * tuning * time
        tone = np.sin(pitch) + sum(loudness * np.sin(pitch * (number + 2)) for number, loudness in enumerate(overtones))
        parts.append(tone * np.minimum(time / attack, 1) * np.exp(-fading * time))
    sound = np.concatenate(parts)
    sound = 0.5 * sound / np.abs(sound).max() + rng.normal(0, rng.uniform(0.001, 0.01), len(sound))
    samples: Samples = sound.astype(np.float32)
    return samples


def write_melodies(folder: Path, *, train: int, held_out: int, seed: int = 1) -> dict[str, Path]:
    """Writes train, val and test, each a folder of sounds and a table NAME.csv; the last two are held out."""
    unseen = melodies(2 * held_out, seed, held_out=True)
    parts = {"train": melodies(train, seed), "val": islice(unseen, held_out), "test": unseen}
    try:
        return {name: _write_part(folder, name, found) for name, found in parts.items()}
    except OSError as problem:
        raise WorkFailed(f"{folder}: cannot write the sounds ({problem.strerror}); choose another folder") from problem


def _write_part(folder: Path, name: str, found: Iterator[Melody]) -> Path:
    (folder / name).mkdir(parents=True, exist_ok=True)
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(("file_name", "transcription"))
    for number, melody in enumerate(found):
        file = f"{name}/{number:05}.wav"
        _write_sound(folder / file, melody.samples)
        table.writerow((file, melody.text))
    write_whole(folder / f"{name}.csv", stream.getvalue().encode())
    return folder / f"{name}.csv"


def _write_sound(path: Path, samples: Samples) -> None:
    """Writes 16-bit WAV. soundfile would wait for the disk after each of thousands of files."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
