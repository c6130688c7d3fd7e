"""Reads a corpus: aligned pairs for translation, or plain text for a language model.

Everything streams. The batch readers are the fast way (lists of a few thousand texts with consecutive line numbers);
`read_lines` and `read_pairs` yield the same texts one at a time, each with its file and line.

    files = expand_paths(["train.*.gz"], base=recipe_folder)
    for batch in read_pair_batches(source_files, target_files): ...
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.errors import DataError, UsageError
from headwise.text.lines import (
    MAX_LINE_BYTES,
    STANDARD_INPUT,
    OnBad,
    check_file,
    display_name,
    line_blocks,
    raise_or_report,
)
from headwise.text.tables import read_table_batches, table_format

__all__ = [
    "MAX_LINE_BYTES",
    "Line",
    "LineBatch",
    "OnBad",
    "Pair",
    "PairBatch",
    "expand_paths",
    "fingerprint",
    "format_of",
    "read_line_batches",
    "read_lines",
    "read_pair_batches",
    "read_pairs",
]

PathsLike = Sequence[str | Path] | str | Path
DEFAULT_FIELDS = {
    ("tsv", 2): ("1", "2"),
    ("jsonl", 2): ("source", "target"),
    ("csv", 2): ("source", "target"),
    ("tsv", 1): ("1",),
    ("jsonl", 1): ("text",),
    ("csv", 1): ("text",),
}


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    file: str
    number: int  # from 1


@dataclass(frozen=True, slots=True)
class Pair:
    source: str
    target: str
    file: str  # of the source line
    line: int  # from 1
    prefix: str = ""  # of the source, where a third column has it


@dataclass(frozen=True, slots=True)
class LineBatch:
    """Consecutive lines of one file; `texts[i]` is line `first + i`."""

    texts: list[str]
    file: str
    first: int


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Consecutive pairs of one file (or of two aligned ones); pair i is line `first + i` of both."""

    sources: list[str]
    targets: list[str]
    file: str
    target_file: str
    first: int
    prefixes: Sequence[str] = ()  # of the sources, where a third column has them


def expand_paths(paths: PathsLike, base: Path | None = None) -> list[str]:
    """Lists the files that paths and globs match, relative to `base`; sorts each glob's matches, keeps '-' as it is."""
    files: list[str] = []
    for path in _as_list(paths):
        if path == STANDARD_INPUT:
            files.append(path)
            continue
        place = Path(path) if base is None else base / path
        if place.exists() or not glob.has_magic(path):
            check_file(place)
            files.append(str(place))
            continue
        found = sorted(file for file in glob.glob(str(place), recursive=True) if not Path(file).is_dir())
        if not found:
            raise DataError(
                "the pattern matches no file; check it (in a recipe it is relative to the recipe)", file=place
            )
        files.extend(found)
    return files


def fingerprint(paths: PathsLike) -> str:
    """Computes a SHA-256 over the contents of the files in order; their names and folders do not matter."""
    total = hashlib.sha256()
    for file in _as_list(paths):
        if file == STANDARD_INPUT:
            raise UsageError("standard input can be read only once: save it to a file and give that file")
        check_file(file)
        with open(file, "rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def read_lines(paths: PathsLike, *, format: str = "auto", field: str | None = None) -> Iterator[Line]:
    """Yields the texts of `read_line_batches` one at a time."""
    for batch in read_line_batches(paths, format=format, field=field):
        for number, text in enumerate(batch.texts, start=batch.first):
            yield Line(text, batch.file, number)


def read_pairs(
    source: PathsLike, target: PathsLike = (), *, format: str = "auto", fields: Sequence[str] = ()
) -> Iterator[Pair]:
    """Yields the pairs of `read_pair_batches` one at a time."""
    for batch in read_pair_batches(source, target, format=format, fields=fields):
        prefixes = batch.prefixes or [""] * len(batch.sources)
        for line, texts in enumerate(zip(batch.sources, batch.targets, prefixes, strict=True), start=batch.first):
            yield Pair(*texts[:2], batch.file, line, texts[2])


def read_line_batches(
    paths: PathsLike, *, format: str = "auto", field: str | None = None, on_bad: OnBad | None = None
) -> Iterator[LineBatch]:
    """Reads plain text: every line, or one field of each TSV or CSV row or JSONL record."""
    files = _as_list(paths)
    _check_standard_input(files)
    for file in files:
        kind = format_of(file, format)
        if kind == "text":
            yield from (LineBatch(texts, display_name(file), first) for first, texts in line_blocks(file, on_bad))
            continue
        for first, rows in _row_blocks(file, kind, [] if field is None else [field], 1, on_bad):
            yield LineBatch([row[0] for row in rows], display_name(file), first)


def read_pair_batches(
    source: PathsLike,
    target: PathsLike = (),
    *,
    format: str = "auto",
    fields: Sequence[str] = (),
    on_bad: OnBad | None = None,
) -> Iterator[PairBatch]:
    """Reads pairs from aligned text files, or from TSV, CSV or JSONL files that hold both sides (`target` empty).

    The `fields` of such a file are its source, its target and perhaps the prefix of its source.
    """
    sources, targets = _as_list(source), _as_list(target)
    _check_standard_input(sources + targets)
    for file in [] if targets else sources:
        yield from _pairs_of_one_file(file, format_of(file, format), fields, on_bad)
    if targets:
        if len(sources) != len(targets):
            names = f"{len(sources)} source and {len(targets)} target files"
            raise DataError(f"{names}: each source file needs its own target file, in the same order")
        for left, right in zip(sources, targets, strict=True):
            for file in (left, right):
                if (kind := format_of(file, format)) != "text":
                    raise DataError(f"{kind} holds both sides in one file; give no target", file=display_name(file))
            yield from _pairs_of_two_files(left, right, on_bad)


def _pairs_of_one_file(file: str, kind: str, fields: Sequence[str], on_bad: OnBad | None) -> Iterator[PairBatch]:
    name = display_name(file)
    if kind == "text":
        raise DataError("the target side is missing; give it, or set the format to tsv, csv or jsonl", file=name)
    count = 3 if len(fields) == 3 else 2
    for first, rows in _row_blocks(file, kind, fields, count, on_bad):
        sources, targets, *prefixes = ([row[place] for row in rows] for place in range(count))
        yield PairBatch(sources, targets, name, name, first, *prefixes)


def _pairs_of_two_files(source: str, target: str, on_bad: OnBad | None) -> Iterator[PairBatch]:
    left_blocks, right_blocks = line_blocks(source, on_bad), line_blocks(target, on_bad)
    left: list[str] = []
    right: list[str] = []
    first = 1
    while True:
        # An empty list means that the side has ended: a block is never empty.
        left = left or next(left_blocks, (0, []))[1]
        right = right or next(right_blocks, (0, []))[1]
        count = min(len(left), len(right))
        if not count:
            break
        yield PairBatch(left[:count], right[:count], display_name(source), display_name(target), first)
        left, right, first = left[count:], right[count:], first + count
    if left or right:
        counts = [
            first - 1 + len(rest) + sum(len(lines) for _, lines in blocks)
            for rest, blocks in ((left, left_blocks), (right, right_blocks))
        ]
        problem = (
            f"{counts[0]:,} lines, but {display_name(target)} has {counts[1]:,}: line {first} has no counterpart; "
            "parallel text needs one target line per source line"
        )
        raise_or_report(on_bad, "line-counts", DataError(problem, file=display_name(source)))


def _row_blocks(
    file: str, kind: str, fields: Sequence[str], count: int, on_bad: OnBad | None
) -> Iterator[tuple[int, list[tuple[str, ...]]]]:
    """Yields the wanted fields of rows on consecutive lines, and the number of the first line."""
    names = tuple(fields) or DEFAULT_FIELDS[kind, count]
    if len(names) != count:
        raise UsageError(f"{count} field{'s' * (count > 1)} expected, got {len(names)}: {', '.join(names)}")
    if kind != "csv":
        parse = _field_parser(kind, names)
        for first, lines in line_blocks(file, on_bad):
            yield first, _parse_lines(lines, parse, display_name(file), first, on_bad)
        return
    for batch in read_table_batches([file], names, format="csv", on_bad=on_bad):
        start = 0
        for place in range(1, len(batch.rows) + 1):
            # A blank line, a cell of several lines and a row that cannot be read leave gaps.
            if place == len(batch.rows) or batch.lines[place] != batch.lines[place - 1] + 1:
                yield batch.lines[start], batch.rows[start:place]
                start = place


Parse = Callable[[str], tuple[str, ...]]  # raises ValueError; the message says what is wrong


def _parse_lines(lines: list[str], parse: Parse, name: str, first: int, on_bad: OnBad | None) -> list[tuple[str, ...]]:
    rows = []
    for number, line in enumerate(lines, start=first):
        try:
            rows.append(parse(line))
        except ValueError as error:
            raise_or_report(on_bad, "format", DataError(str(error), file=name, line=number))
            rows.append(("", "", ""))
    return rows


def _field_parser(kind: str, names: tuple[str, ...]) -> Parse:
    if kind == "jsonl":
        return lambda line: _json_fields(line, names)
    if not all(name.isdecimal() and int(name) >= 1 for name in names):
        raise UsageError(f"tsv columns are numbers, counted from 1, not {', '.join(names)}")
    columns = [int(name) - 1 for name in names]

    def parse_row(line: str) -> tuple[str, ...]:
        cells = line.split("\t")
        if len(cells) <= max(columns):
            raise ValueError(
                f"{len(cells)} columns, but column {max(columns) + 1} is needed; fix the row or set fields"
            )
        return tuple(cells[column] for column in columns)

    return parse_row


def _json_fields(line: str, names: tuple[str, ...]) -> tuple[str, ...]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error}); each line must be one JSON object") from error
    texts = []
    for name in names:
        value = record.get(name) if isinstance(record, dict) else None
        if value is None:
            # A dot descends into nested objects: translation.en
            value = record
            for key in name.split("."):
                value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, str):
            raise ValueError(f"no text in field {name!r}; fix the record or set fields to the right names")
        if "\\u" in line and any("\ud800" <= character <= "\udfff" for character in value):
            raise ValueError(f"half a surrogate pair in field {name!r}, which is not valid Unicode; fix the record")
        texts.append(value)
    return tuple(texts)


def format_of(file: str, format: str = "auto") -> str:
    """Returns text, tsv, csv or jsonl: what is asked for, or what the file's name says."""
    return (table_format(file) or "text") if format == "auto" else format


def _as_list(paths: PathsLike) -> list[str]:
    return [str(paths)] if isinstance(paths, str | Path) else [str(path) for path in paths]


def _check_standard_input(files: list[str]) -> None:
    if files.count(STANDARD_INPUT) > 1:
        raise UsageError("standard input ('-') can be read only once: save the other side to a file")
