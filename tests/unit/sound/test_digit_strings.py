from __future__ import annotations

import csv
import tarfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from sounds import save, tone

from headwise.sound.digit_strings import main, parts, read_digits, strings

WORDS = ("one", "two")


def write_digits(folder: Path) -> Path:
    """Two speakers, two words, twelve takes each: every take is a tone of its own loudness."""
    folder.mkdir()
    rows, loudness = ["file_name,transcription,speaker,split"], 0.01
    for speaker in ("ann", "bob"):
        for word in WORDS:
            for take in range(12):
                name = f"{word}_{speaker}_{take}.wav"
                save(folder / name, tone(0.1, rate=8000, loudness=loudness), 8000, subtype="FLOAT")
                rows.append(f"{name},{word},{speaker},{'test' if take < 2 else 'train'}")
                loudness += 0.01
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def takes_in(samples: np.ndarray) -> set[float]:
    """The takes that a string is made of, told by their loudness."""
    ends = np.flatnonzero(np.diff((np.abs(samples) > 0.001).astype(int)))
    assert len(ends)
    blocks = samples[: len(samples) // 20 * 20].reshape(-1, 20)
    return {round(float(np.abs(block).max()), 2) for block in blocks if (np.abs(block) > 0.001).sum() > 15}


def test_no_part_has_a_recording_of_another_and_one_speaker_is_never_heard(tmp_path: Path) -> None:
    found = parts(read_digits(write_digits(tmp_path / "digits")), "bob")
    takes = {name: {id(digit) for digit in digits} for name, digits in found.items()}
    assert {name: len(ids) for name, ids in takes.items()} == {"train": 18, "val": 2, "test": 4, "unheard": 24}
    assert len(set.union(*takes.values())) == 48
    assert {digit.speaker for name in ("train", "val", "test") for digit in found[name]} == {"ann"}
    assert {digit.speaker for digit in found["unheard"]} == {"bob"}


def test_a_string_has_the_recordings_that_its_text_says_of_one_speaker(tmp_path: Path) -> None:
    digits = read_digits(write_digits(tmp_path / "digits"))
    for string in strings(digits, 20, (1,), 3, 7):
        words = string.text.split()
        assert 3 <= len(words) <= 7
        assert set(words) <= set(WORDS)
        seconds = len(string.samples) / string.rate
        assert 0.1 * len(words) <= seconds <= 0.1 * len(words) + 0.25 * (len(words) - 1) + 0.01
        mine = {round(float(np.abs(d.samples).max()), 2) for d in digits if d.speaker == string.speaker}
        assert takes_in(string.samples) <= {round(value + step, 2) for value in mine for step in (-0.01, 0, 0.01)}


def test_the_seed_decides_everything_and_an_archive_is_read_like_a_folder(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "digits")
    with tarfile.open(tmp_path / "digits.tar.gz", "w:gz") as archive:
        archive.add(folder, "digits")
    for source, output in ((folder, "a"), (tmp_path / "digits.tar.gz", "b")):
        main([str(source), str(tmp_path / output), "--unheard", "bob", "--train", "6", "--held-out", "3"])
    for name, count in (("train", 6), ("val", 3), ("test", 3), ("unheard", 3)):
        first, second = ((tmp_path / output / f"{name}.csv").read_text() for output in "ab")
        assert first == second
        rows = list(csv.DictReader(first.splitlines()))
        assert len(rows) == count
        for row in rows:
            assert (tmp_path / "a" / row["file_name"]).read_bytes() == (tmp_path / "b" / row["file_name"]).read_bytes()
            assert soundfile.info(tmp_path / "a" / row["file_name"]).samplerate == 8000


@pytest.mark.parametrize("fault", ["no table", "no speaker", "no file"])
def test_what_cannot_be_used_is_one_clear_line(tmp_path: Path, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_digits(tmp_path / "digits")
    if fault == "no table":
        (folder / "metadata.csv").unlink()
    if fault == "no file":
        (folder / "one_ann_3.wav").unlink()
    with pytest.raises(SystemExit) as stopped:
        main([str(folder), str(tmp_path / "out"), "--unheard", "nobody" if fault == "no speaker" else "bob"])
    assert stopped.value.code == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert {"no table": "metadata.csv", "no speaker": "ann, bob", "no file": "one_ann_3.wav"}[fault] in told
    assert not (tmp_path / "out").exists()
