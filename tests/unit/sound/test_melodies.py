"""The generated melodies: the same for the same seed, with the pitch that their text names, held-out ones new."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import WorkFailed
from headwise.sound.melodies import NOTES, RATE, melodies, play, write_melodies
from headwise.sound.reading import sound_info


def test_the_seed_decides_every_sample_and_no_two_sounds_are_alike() -> None:
    first, again, other = (list(melodies(20, seed=seed)) for seed in (3, 3, 4))
    assert [one.text for one in first] == [one.text for one in again]
    assert all(np.array_equal(one.samples, two.samples) for one, two in zip(first, again, strict=True))
    assert [one.text for one in other] != [one.text for one in first]
    assert len({one.samples.tobytes() for one in first}) == 20


def test_held_out_melodies_are_longer_and_none_is_trained_on() -> None:
    training = {one.text for one in melodies(1500)}
    unseen = [one.text for one in melodies(100, held_out=True)]
    assert not training & set(unseen)
    assert {len(text.split()) for text in unseen} == {3, 4, 5}
    assert {len(text.split()) for text in training} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("note", NOTES)
def test_a_note_sounds_at_its_pitch(note: str) -> None:
    sound = play([note], np.random.default_rng(1))
    spectrum = np.abs(np.fft.rfft(sound, 1 << 15))
    peak = np.argmax(spectrum) * RATE / (1 << 15)
    assert abs(peak / NOTES[note] - 1) < 0.02
    assert np.abs(sound).max() < 1


def test_the_tables_name_sounds_that_are_there(tmp_path: Path) -> None:
    files = write_melodies(tmp_path, train=6, held_out=4)
    for name, count in (("train", 6), ("val", 4), ("test", 4)):
        rows = list(csv.DictReader(files[name].open(encoding="utf-8")))
        assert len(rows) == count
        for row in rows:
            info = sound_info(str(tmp_path / row["file_name"]))
            assert 0.15 < info.seconds < 2
            assert set(row["transcription"].split()) <= set(NOTES)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkFailed, match="cannot write the sounds"):
        write_melodies(tmp_path / "file" / "corpus", train=1, held_out=1)
