"""The feature store: what was heard is what is read back, and what could not be heard is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sounds import noise, save

from headwise.config.schema import Filters
from headwise.config.schema import Tokenizer as TokenizerSettings
from headwise.data.cached import StoreDamagedError
from headwise.data.feature_store import FeatureStore, cached_features, write_features
from headwise.data.recordings import RecordingFiles, Recordings
from headwise.errors import DataError
from headwise.sound.features import log_mel, pad_features
from headwise.sound.reading import read_sound
from headwise.text.tokenizer import Tokenizer


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["one two three"] * 3, TokenizerSettings(kind="char", size=280))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for number, seconds in enumerate((0.5, 1.25, 0.02, 3.0), start=1):
        save(tmp_path / f"{number}.wav", noise(seconds, seed=number))
    (tmp_path / "5.wav").write_bytes(b"not a sound")
    rows = "".join(
        f"{number}.wav,{word}\n" for number, word in enumerate(("one", "two", "click", "long", "bad", "gone"), 1)
    )
    file = tmp_path / "metadata.csv"
    file.write_text(f"file_name,transcription\n{rows}")
    return file


def store_of(table: Path, tokenizer: Tokenizer, told: list[str] | None = None) -> FeatureStore:
    stream = Recordings(RecordingFiles((str(table),)), Filters())

    def note(reason: str, error: DataError) -> None:
        if told is not None:
            told.append(f"{reason} {error}")

    return cached_features(
        table.parent / "cache", "key", lambda new: write_features(new, stream, tokenizer, 20, 200, {}, on_bad=note)
    )


def test_features_and_ids_are_those_of_the_recordings(table: Path, tokenizer: Tokenizer) -> None:
    store = store_of(table, tokenizer)
    assert len(store) == 2
    for row, (name, word) in enumerate((("1", "one"), ("2", "two"))):
        samples = read_sound(table.parent / f"{name}.wav", most_seconds=9)
        padded = pad_features(store.features(row), 200)
        assert np.abs(padded - log_mel(samples, 20, frames=200)).max() < 2e-3  # half precision
        assert store.rows("text", np.array([row])).tokens.tolist() == tokenizer.encode(word)
        assert store.place(int(store.line_numbers(np.array([row]))[0])) == (str(table), row + 2)
    assert store.frames().tolist() == [53, 128]
    assert store.manifest.about["seconds"] == pytest.approx(1.81)
    store.verify()


def test_what_cannot_be_learned_from_is_counted_and_told_with_its_line(table: Path, tokenizer: Tokenizer) -> None:
    told: list[str] = []
    store = store_of(table, tokenizer, told)
    assert store.manifest.dropped == {"short": 1, "long": 1, "unreadable": 2}
    assert store.manifest.counts.lines == 6
    assert [line.split()[0] for line in told] == ["short", "long", "unreadable", "unreadable"]
    assert f"{table}:5: {table.parent / '4.wav'}: is 3.0 s long, but at most 2 s are read" in told[1]
    assert "7: " in told[3]
    assert "no such file" in told[3]


def test_a_store_that_is_damaged_is_written_again(table: Path, tokenizer: Tokenizer) -> None:
    store = store_of(table, tokenizer)
    with (store.directory / "features").open("ab") as file:
        file.truncate(100)
    with pytest.raises(StoreDamagedError):
        FeatureStore(store.directory)
    assert len(store_of(table, tokenizer)) == 2
