"""Recordings with their texts, from tables and folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from sounds import noise, save

from headwise.config.schema import Filters
from headwise.data.recordings import RecordingFiles, Recordings, fingerprint, read_recordings, recording_places
from headwise.errors import DataError


def found(*paths: Path, columns: tuple[str, ...] = ()) -> list[tuple[str, str, str, int]]:
    places = recording_places([str(path) for path in paths])
    return [
        (Path(r.sound).name, r.text, Path(r.file).name, r.line) for r in read_recordings(places, columns)
    ]  # fmt: skip


def test_tables_and_folders_of_users_are_read(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,transcription,speaker\na.wav,hello,x\nb.wav,good bye,y\n")
    (tmp_path / "data.jsonl").write_text('{"audio_filepath": "c.wav", "text": "again", "duration": 1.5}\n')
    (tmp_path / "voice.tsv").write_text("client\tpath\tsentence\n1\td.mp3\tcommon voice\n")
    (tmp_path / "own.csv").write_text("sound,said\ne.wav,own\n")
    assert found(tmp_path / "metadata.csv") == [
        ("a.wav", "hello", "metadata.csv", 2), ("b.wav", "good bye", "metadata.csv", 3)
    ]  # fmt: skip
    assert found(tmp_path) == found(tmp_path / "metadata.csv")  # a folder's own table
    assert found(tmp_path / "data.jsonl") == [("c.wav", "again", "data.jsonl", 1)]
    assert found(tmp_path / "voice.tsv") == [("d.mp3", "common voice", "voice.tsv", 2)]
    assert found(tmp_path / "own.csv", columns=("sound", "said")) == [("e.wav", "own", "own.csv", 2)]


def test_a_folder_has_a_text_beside_each_sound(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    for name in ("b.wav", "more/a.FLAC"):
        (tmp_path / name).write_bytes(b"")
        (tmp_path / name).with_suffix(".txt").write_text(f" what is said\nin {name[-5:]} \n")
    assert found(tmp_path) == [
        ("b.wav", "what is said in b.wav", "b.txt", 1), ("a.FLAC", "what is said in .FLAC", "a.txt", 1)
    ]  # fmt: skip
    (tmp_path / "more/a.txt").unlink()
    with pytest.raises(DataError, match=r"a.FLAC: has no text: write what is said into a.txt"):
        found(tmp_path)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.csv").write_text("name,words\n1,2\n")
    for path, problem in (
        ("none.csv", "no such table"),
        ("*.tsv", "no such table"),
        ("empty", "has no sounds"),
        ("a.csv", "file_name"),
    ):
        with pytest.raises(DataError, match=problem):
            found(tmp_path / path)


def test_every_line_is_kept_or_counted_by_its_reason(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "file_name,transcription\n1.wav,one\n2.wav,\n3.wav,one\n4.wav,t\x07wo\n5.wav,five!\n"
    )
    (tmp_path / "b.csv").write_text("file_name,transcription\n6.wav,six\n")
    files = RecordingFiles((str(tmp_path / "a.csv"), str(tmp_path / "b.csv")))
    stream = Recordings(files, Filters(duplicates=True, max_characters=4))
    kept = [(number, r.text) for number, r in stream.numbered()]
    assert kept == [(2, "one"), (8, "six")]  # lines through all files
    assert stream.counts.dropped == {"empty": 1, "duplicates": 1, "control": 1, "max_characters": 1}
    assert stream.files == [(str(tmp_path / "a.csv"), 6), (str(tmp_path / "b.csv"), 2)]
    (chunk,) = list(stream)
    assert chunk.texts == {"text": ["one", "six"]}


def test_the_parts_of_a_split_share_nothing_and_lack_nothing(tmp_path: Path) -> None:
    rows = "".join(f"{number}.wav,the same text\n" for number in range(300))
    (tmp_path / "a.csv").write_text(f"file_name,transcription\n{rows}")
    parts = [
        {
            r.sound
            for _, r in Recordings(RecordingFiles((str(tmp_path / "a.csv"),), (), part, 0.2), Filters()).numbered()
        }
        for part in ("training", "validation")
    ]
    assert not parts[0] & parts[1]
    assert len(parts[0] | parts[1]) == 300
    assert 40 <= len(parts[1]) <= 80


def test_the_fingerprint_changes_with_texts_and_sounds(tmp_path: Path) -> None:
    table, sound = tmp_path / "a.csv", tmp_path / "1.wav"
    table.write_text("file_name,transcription\n1.wav,one\n")
    save(sound, noise(3.0))
    first = fingerprint([str(table)])
    assert fingerprint([str(table)]) == first
    save(sound, noise(3.0, seed=1))
    second = fingerprint([str(table)])
    table.write_text("file_name,transcription\n1.wav,two\n")
    sound_gone = fingerprint([str(table)])
    assert len({first, second, sound_gone}) == 3
