"""Reads tables with named columns: CSV and TSV with a header, JSONL; compressed or not.

A CSV cell may be quoted and then have line breaks; a row is named by the line on which it begins. Rows without any text
are skipped. `on_bad` is told of rows that cannot be read, which are then skipped too; without it they raise.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.errors import DataError
from headwise.text.lines import OnBad, display_name, line_blocks, raise_or_report

FORMAT_OF_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_DELIMITER = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of the columns that were asked for."""

    values: tuple[str, ...]
    file: str
    line: int  # from 1


def table_format(file: str | Path) -> str | None:
    """csv, tsv or jsonl by the name of the file; None: it is not a table."""
    name = Path(file).name.lower()
    for packed in (".gz", ".xz", ".zst"):
        name = name.removesuffix(packed)
    return FORMAT_OF_SUFFIX.get(Path(name).suffix)


def read_table(file: str | Path, columns: Sequence[Sequence[str]], *, on_bad: OnBad | None = None) -> Iterator[Row]:
    """Yields the rows of a table. `columns` are alternatives; the first of which the table has all is read."""
    kind = table_format(file)
    if kind is None:
        raise DataError(f"is not a table; give one of *{', *'.join(FORMAT_OF_SUFFIX)}", file=file)
    if kind == "jsonl":
        return _json_rows(str(file), columns, on_bad)
    return _delimited_rows(str(file), columns, _DELIMITER[kind], on_bad)


def _delimited_rows(file: str, columns: Sequence[Sequence[str]], delimiter: str, on_bad: OnBad | None) -> Iterator[Row]:
    name = display_name(file)
    reader = csv.reader(_lines(file, on_bad), delimiter=delimiter, strict=True)
    places: list[int] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise_or_report(
                on_bad, "format", DataError(f"is not a row ({error}); check its quotes", file=name, line=line)
            )
            continue
        if cells is None:
            break
        if not any(cell.strip() for cell in cells):
            continue
        if places is None:
            chosen = _choose(columns, [cell.strip() for cell in cells], name)
            places = [[cell.strip() for cell in cells].index(column) for column in chosen]
        elif len(cells) <= max(places):
            problem = f"has {len(cells)} cells, but the header names more; check its quotes and separators"
            raise_or_report(on_bad, "format", DataError(problem, file=name, line=line))
        else:
            yield Row(tuple(cells[place] for place in places), name, line)
    if places is None:
        raise DataError("has no header; its first line must name the columns", file=name)


def _json_rows(file: str, columns: Sequence[Sequence[str]], on_bad: OnBad | None) -> Iterator[Row]:
    name, chosen = display_name(file), None
    for line, text in enumerate(_lines(file, on_bad), start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
            if not isinstance(record, dict):
                raise ValueError("it is not an object")
        except (ValueError, RecursionError) as error:
            problem = f"not JSON ({error}); each line must be one JSON object"
            raise_or_report(on_bad, "format", DataError(problem, file=name, line=line))
            continue
        chosen = chosen or _choose(columns, list(record), name)
        values = tuple(record.get(column) for column in chosen)
        if not all(isinstance(value, (str, int)) for value in values) or _half_character(text, values):
            lacking = next((c for c, v in zip(chosen, values, strict=True) if not isinstance(v, (str, int))), chosen[0])
            problem = f"no text in {lacking!r}; fix the record"
            raise_or_report(on_bad, "format", DataError(problem, file=name, line=line))
            continue
        yield Row(tuple(map(str, values)), name, line)
    if chosen is None:
        raise DataError("has no record; each line must be one JSON object", file=name)


def _lines(file: str, on_bad: OnBad | None) -> Iterator[str]:
    for _, lines in line_blocks(file, on_bad):
        yield from (f"{line}\n" for line in lines)


def _choose(columns: Sequence[Sequence[str]], present: Sequence[str], name: str) -> Sequence[str]:
    for alternative in columns:
        if all(column in present for column in alternative):
            return alternative
    wanted = " or ".join(", ".join(alternative) for alternative in columns)
    raise DataError(
        f"has the columns {', '.join(present[:20])}, but needs {wanted}; name them in data.columns", file=name
    )


def _half_character(text: str, values: tuple[object, ...]) -> bool:
    """JSON can spell half of a surrogate pair, which is not text."""
    return "\\u" in text and any("\ud800" <= character <= "\udfff" for v in values for character in str(v))
