from __future__ import annotations

import csv
from pathlib import Path

import pytest
import soundfile

from headwise.data import read_aloud
from headwise.data.read_aloud import heard, main, spoken


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("I ate french fries.", "i ate french fries"),
        ("“Well,” he said, it’s late!", "well he said it's late"),
        ("It was in 1998.", None),
        ("A well-known man.", None),
        ("100 km/h", None),
        ("...", None),
    ],
)
def test_a_transcription_is_what_can_be_heard(sentence: str, text: str | None) -> None:
    assert heard(sentence) == text


def test_a_sentence_is_read_once_and_long_ones_are_left_out() -> None:
    lines = ["I am here.", "I am here!", "I am not here at all."]
    assert list(spoken(lines, 4)) == [("I am here.", "i am here")]


def test_a_missing_program_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(read_aloud, "PROGRAM", "no-such-program")
    (tmp_path / "text.txt").write_text("I am here.\n", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path / "text.txt"), str(tmp_path / "made")])
    assert stopped.value.code == 2
    assert "no-such-program is not installed" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(read_aloud.shutil.which("espeak-ng") is None, reason="needs espeak-ng")
def test_sentences_become_recordings_and_a_table(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("I am here.\nWhere are you?\n", encoding="utf-8")
    tables = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        main([str(tmp_path / "text.txt"), str(folder / "said"), "--voices", "en-us", "en-gb"])
        with (folder / "said.csv").open(encoding="utf-8") as stream:
            tables.append(list(csv.DictReader(stream)))
        for row in tables[-1]:
            assert soundfile.info(folder / row["file_name"]).duration > 0.4
    assert [row["transcription"] for row in tables[0]] == ["i am here", "where are you"]
    assert tables[0] == tables[1], "the seed decides all"
