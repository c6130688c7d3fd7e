"""Reads tables: CSV, TSV and JSONL with named columns, compressed or not, row by row with line numbers.

- CSV: the first row names the columns; cells may be quoted and then hold delimiters, line breaks and doubled quotes.
  The delimiter is the one of , ; tab | with which the first row has the columns that are asked for.
- TSV: the same with tabs, and without quoting: a quotation mark is text.
- JSONL: one object per line; numbers and true/false become text, null is an empty cell, a dot descends (a.b).

Columns that are asked for by number (from 1) are those of a CSV or TSV file without a row of names.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from headwise.errors import DataError
from headwise.files import shortened
from headwise.text.lines import MAX_LINE_BYTES, OnBad, display_name, line_blocks, raise_or_report

FORMATS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
DELIMITERS = ",;\t|"
_ROWS = 2000  # of a batch
NAME_THEM = "set data.columns or --columns (of parallel text: data.fields)"

csv.field_size_limit(MAX_LINE_BYTES)  # a global of the library; its default is less than a long document


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Consecutive rows of one file: for each row the cells of the columns asked for, and the line that it begins at."""

    rows: list[tuple[str, ...]]
    lines: list[int]  # from 1; a row of names counts
    file: str
    end: int  # lines of the file up to here


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of the columns that were asked for."""

    values: tuple[str, ...]
    file: str
    line: int  # from 1


def read_table(file: str | Path, columns: Sequence[Sequence[str]], *, on_bad: OnBad | None = None) -> Iterator[Row]:
    """Yields the rows of a table. `columns` are alternatives; the first of which the table has all is read."""
    reader = _Reader(str(file), columns, "auto", on_bad)
    return (Row(cells, reader.name, line) for line, cells in reader.rows())


def read_table_batches(
    paths: Sequence[str], columns: Sequence[str], *, format: str = "auto", on_bad: OnBad | None = None
) -> Iterator[TableBatch]:
    """Yields the rows of all files in order. A row that cannot be read is left out after `on_bad` was told of it."""
    for path in paths:
        yield from _Reader(str(path), [columns], format, on_bad).batches()


def table_format(file: str | Path) -> str | None:
    """csv, tsv or jsonl by the name of the file; None: it is not a table."""
    name = Path(file).name.lower()
    for packed in (".gz", ".xz", ".zst"):
        name = name.removesuffix(packed)
    return FORMATS.get(Path(name).suffix)


def format_of(file: str, format: str = "auto") -> str:
    """csv, tsv or jsonl, by the file's name unless given."""
    if format in FORMATS.values():
        return format
    if format == "auto" and (found := table_format(file)):
        return found
    raise DataError(
        "is not named like a table (.csv, .tsv, .jsonl, perhaps with .gz); rename it, or set data.format", file=file
    )


class _Reader:
    def __init__(self, file: str, columns: Sequence[Sequence[str]], format: str, on_bad: OnBad | None) -> None:
        self.file, self.alternatives, self.on_bad = file, columns, on_bad
        self.name, self.kind = display_name(file), format_of(file, format)
        self.numbered = all(column.isdecimal() and int(column) > 0 for column in columns[0])
        self.read = 0  # lines so far

    def batches(self) -> Iterator[TableBatch]:
        rows: list[tuple[str, ...]] = []
        lines: list[int] = []
        for line, cells in self.rows():
            rows.append(cells)
            lines.append(line)
            if len(rows) == _ROWS:
                yield TableBatch(rows, lines, self.name, self.read)
                rows, lines = [], []
        yield TableBatch(rows, lines, self.name, self.read)

    def rows(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The line that each row begins at, and its cells."""
        return self._objects() if self.kind == "jsonl" else self._cells()

    def _cells(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Rows of a file whose first row says how many cells a row has, and mostly which."""
        places: list[int] | None = None
        width = 0
        for line, cells in self._csv_records() if self.kind == "csv" else self._tsv_records():
            if places is None:
                places, width = self._places(cells, line), len(cells)
                if places is None:
                    return
                if not self.numbered:
                    continue
            if len(cells) != width:
                self._report(line, f"has {len(cells)} cells, but the first row has {width}; quote or fix its cells")
                continue
            yield line, tuple(cells[place] for place in places)
        if places is None and self.read:  # of a file without lines that is said already
            self._report(None, "has no row of column names; its first row must name them", "columns")

    def _csv_records(self) -> Iterator[tuple[int, list[str]]]:
        """A record may take several lines; empty lines are none."""
        source = self._lines()
        first = next(source, None)
        if first is None:
            return
        reader = csv.reader(chain([first], source), delimiter=self._delimiter(first), strict=True)
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                self._report(line, _explain(error))
                continue
            if cells:
                yield line, cells

    def _tsv_records(self) -> Iterator[tuple[int, list[str]]]:
        for number, line in enumerate(self._lines(), start=1):
            if line != "\n":
                yield number, line[:-1].split("\t")

    def _objects(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        for number, line in enumerate(self._lines(), start=1):
            if line == "\n":
                continue
            try:
                cells = self._json_cells(line)
            except ValueError as error:
                self._report(number, str(error))
                continue
            yield number, cells

    def _delimiter(self, first: str) -> str:
        """The one with which the first row has the wanted names; otherwise the one that splits it most."""
        split = {one: next(csv.reader([first], delimiter=one), []) for one in DELIMITERS}
        named = [one for one, cells in split.items() if self._chosen([cell.strip() for cell in cells])]
        return named[0] if named else max(split, key=lambda one: len(split[one]))

    def _places(self, names: list[str], line: int) -> list[int] | None:
        """Where in a row the wanted columns are."""
        if self.numbered:
            places = [int(column) - 1 for column in self.alternatives[0]]
            if max(places) < len(names):
                return places
            self._report(line, f"has {len(names)} columns, but column {max(places) + 1} is asked for", "columns")
            return None
        stripped = [name.strip() for name in names]
        columns = self._chosen(stripped)
        if columns is None:
            self._report(line, self._lacking(stripped, "the first row names"), "columns")
            return None
        if twice := [column for column in columns if stripped.count(column) > 1]:
            self._report(line, f"there are several columns '{twice[0]}'; rename all but one", "columns")
            return None
        return [stripped.index(column) for column in columns]

    def _chosen(self, names: Sequence[str]) -> Sequence[str] | None:
        """The first alternative of which all columns are there."""
        return next((one for one in self.alternatives if all(column in names for column in one)), None)

    def _lacking(self, names: Sequence[str], there: str) -> str:
        present = shortened(", ".join(names) or "none", 200)
        if len(self.alternatives) > 1:
            wanted = " or ".join(", ".join(one) for one in self.alternatives)
            return f"{there} {present}, but {wanted} are needed: {NAME_THEM}"
        column = next(column for column in self.alternatives[0] if column not in names)
        return f"there is no column '{column}'; {there} {present}: {NAME_THEM}"

    def _lines(self) -> Iterator[str]:
        for first, lines in line_blocks(self.file, self.on_bad):
            for number, line in enumerate(lines, start=first):
                self.read = number
                yield line + "\n"

    def _json_cells(self, line: str) -> tuple[str, ...]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"is not JSON ({error}); each line must be one JSON object") from error
        columns = self.alternatives[0]
        if len(self.alternatives) > 1 and isinstance(record, dict):
            chosen = self._chosen(list(record))
            if chosen is None:
                raise ValueError(self._lacking(list(record), "it has"))
            columns = chosen
        cells = tuple(_json_cell(record, name) for name in columns)
        if "\\u" in line and any("\ud800" <= character <= "\udfff" for cell in cells for character in cell):
            raise ValueError("has half a surrogate pair, which is not valid Unicode; fix the record")
        return cells

    def _report(self, line: int | None, problem: str, kind: str = "format") -> None:
        raise_or_report(self.on_bad, kind, DataError(problem, file=self.name, line=line))


def _explain(error: csv.Error) -> str:
    message = str(error)
    if "field larger" in message or "unexpected end" in message:
        return "a quotation mark is opened here and not closed; close it, or double it if it is text"
    return f"is not valid CSV ({message}); double a quotation mark that is text"


def _json_cell(record: Any, name: str) -> str:
    value = record.get(name, _MISSING) if isinstance(record, dict) else _MISSING
    if value is _MISSING:
        value = record
        for key in name.split("."):
            value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
    if value is _MISSING:
        there = shortened(", ".join(map(str, record)) if isinstance(record, dict) else "no columns", 200)
        raise ValueError(f"there is no column '{name}' but {there}; fix the record, or set data.columns")
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if not isinstance(value, str):
        raise ValueError(f"column '{name}' holds a {type(value).__name__}, not text; fix the record")
    return value


_MISSING = object()
