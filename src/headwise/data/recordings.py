"""Recordings with their texts: a table beside sound files, or a folder with a .txt beside each sound.

    metadata.csv       file_name,transcription           (also TSV, or compressed; more columns are ignored)
    data.jsonl         {"audio_filepath": …, "text": …}
    folder/            a.wav, a.txt, b/c.flac, b/c.txt; or a metadata.csv or metadata.jsonl in it

Paths of sounds are relative to the table.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headwise.config.schema import Filters
from headwise.data.chunks import Chunk
from headwise.data.split import Part, part_of_pairs
from headwise.errors import DataError
from headwise.files import read_bounded
from headwise.sound.reading import SUFFIXES
from headwise.text.filters import FilterCounts, row_filter
from headwise.text.lines import MAX_LINE_BYTES, OnBad, raise_or_report
from headwise.text.tables import FORMATS, read_table

COLUMNS = (("file_name", "transcription"), ("audio_filepath", "text"), ("path", "sentence"))
TABLES = ("metadata.csv", "metadata.tsv", "metadata.jsonl")
_PRINTED = 1 << 16  # bytes of the beginning and of the end of a sound that its fingerprint depends on
_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Recording:
    """A sound file, what is said in it, and where that is written."""

    sound: str
    text: str
    file: str
    line: int  # from 1


def recording_places(paths: Sequence[str], base: Path | None = None) -> list[str]:
    """Lists the tables and folders that paths and globs match, relative to `base`; a folder's own table replaces it."""
    found: list[str] = []
    for path in paths:
        place = Path(path) if base is None else base / path
        matches = [str(place)] if place.exists() or not glob.has_magic(path) else sorted(glob.glob(str(place)))
        if not matches or not Path(matches[0]).exists():
            problem = "there is no such table or folder; check the path (in a recipe it is relative to the recipe)"
            raise DataError(problem, file=place)
        found += [_table_in(match) for match in matches]
    return found


def _table_in(place: str) -> str:
    if not Path(place).is_dir():
        return place
    return next((str(table) for name in TABLES if (table := Path(place) / name).is_file()), place)


def read_recordings(
    places: Sequence[str], columns: Sequence[str] = (), *, on_bad: OnBad | None = None
) -> Iterator[Recording]:
    """Yields all recordings of tables and folders, in order; `on_bad` is told of rows that cannot be read."""
    for place in places:
        if Path(place).is_dir():
            yield from _in_folder(Path(place), on_bad)
            continue
        folder = Path(place).parent
        for row in read_table(place, (tuple(columns),) if columns else COLUMNS, on_bad=on_bad):
            sound, text = row.values[:2]
            yield Recording(str(folder / sound), text, row.file, row.line)


def _in_folder(folder: Path, on_bad: OnBad | None) -> Iterator[Recording]:
    sounds = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not sounds:
        tables = ", ".join(f"*{suffix}" for suffix in FORMATS)
        problem = f"has no sounds ({', '.join(SUFFIXES[:4])}, …) and no {TABLES[0]}; or name a table: {tables}"
        raise DataError(problem, file=folder)
    for sound in sounds:
        text = sound.with_suffix(".txt")
        try:
            content = read_bounded(text, MAX_LINE_BYTES).decode("utf-8-sig")
        except FileNotFoundError:
            lacking = f"has no text: write what is said into {text.name} beside it"
            raise_or_report(on_bad, "no-text", DataError(lacking, file=sound))
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise_or_report(on_bad, "encoding", DataError(f"cannot be read as UTF-8 ({error})", file=text))
            continue
        yield Recording(str(sound), " ".join(content.split()), str(text), 1)


def fingerprint(places: Sequence[str], columns: Sequence[str] = ()) -> str:
    """A SHA-256 over texts and sounds. Of each sound it has the size, the beginning and the end: reading hundreds of
    gigabytes whole would take longer than most changes are worth."""
    total = hashlib.sha256()
    for recording in read_recordings(places, columns, on_bad=lambda kind, error: None):
        total.update(f"{recording.text}\0".encode("utf-8", "surrogatepass"))
        try:
            with open(recording.sound, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                total.update(size.to_bytes(8, "little") + stream.read(_PRINTED))
                stream.seek(max(_PRINTED, size - _PRINTED))
                total.update(stream.read(_PRINTED))
        except OSError:
            total.update(b"unreadable")
    return total.hexdigest()


@dataclass(frozen=True)
class RecordingFiles:
    """Tables and folders, and which part of them is read."""

    places: tuple[str, ...]
    columns: tuple[str, ...] = ()
    part: Part | None = None  # only this part of a corpus that is split; None: all of it
    share: float = 0.0  # of its recordings that are in the validation part


class Recordings:
    """Streams recordings any number of times, as `Chunks` streams a corpus; `counts` and `files` are of the last pass.

    Lines are counted through all tables; a sound in a folder is a line of its own.
    """

    sides: tuple[str, ...] = ("text",)
    text_sides: tuple[str, ...] = ("text",)

    def __init__(self, files: RecordingFiles, filters: Filters) -> None:
        self.corpus, self.filters = files, filters
        self.counts = FilterCounts()
        self.files: list[tuple[str, int]] = []

    def __iter__(self) -> Iterator[Chunk]:
        texts: list[str] = []
        lines: list[int] = []
        for number, recording in self.numbered():
            texts.append(recording.text)
            lines.append(number)
            if len(texts) == _ROWS:
                yield Chunk({"text": texts}, np.array(lines, dtype=np.int64))
                texts, lines = [], []
        yield Chunk({"text": texts}, np.array(lines, dtype=np.int64))

    def numbered(self) -> Iterator[tuple[int, Recording]]:
        """The recordings that are kept, each with its line number through all files, from 1."""
        self.counts, self.files = FilterCounts(), []
        drop, before = row_filter(self.filters), 0  # lines of the files before this one
        for recording in read_recordings(self.corpus.places, self.corpus.columns):
            if not self.files or self.files[-1][0] != recording.file:
                before = sum(lines for _, lines in self.files)
                self.files.append((recording.file, 0))
            self.files[-1] = (recording.file, max(self.files[-1][1], recording.line))
            reason = self._of_part(recording) or drop((recording.text,))
            if len(recording.text) > self.filters.max_characters:
                reason = reason or "max_characters"
            self.counts.add(reason)
            if reason is None:
                yield before + recording.line, recording

    def _of_part(self, recording: Recording) -> str | None:
        """The name of the other part where the recording is of that one."""
        if self.corpus.part is None:
            return None
        part = part_of_pairs([Path(recording.sound).name], self.corpus.share)[0]
        return None if part == self.corpus.part else part

    @property
    def names(self) -> list[str]:
        return list(self.corpus.places)

    @property
    def reading(self) -> list[object]:
        part = [self.corpus.part, self.corpus.share] if self.corpus.part else []
        return ["recordings", list(self.corpus.columns), self.filters.model_dump(mode="json"), *part]
