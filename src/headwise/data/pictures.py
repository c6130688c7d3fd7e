"""Finds out where labelled pictures are: in folders of classes, in the files that a table names, or in idx files."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from headwise.errors import DataError
from headwise.files import check_name
from headwise.image.idx import is_idx
from headwise.image.reading import SUFFIXES
from headwise.image.sources import Entry, FileSource, IdxSource, JoinedSource, Source, folder_source
from headwise.text.tables import read_table, table_format

COLUMNS = (("file_name", "label"), ("path", "label"), ("image", "label"), ("file", "label"))


def picture_paths(paths: Sequence[str], base: Path | None = None) -> list[str]:
    """The folders and files that paths and globs match, relative to `base`."""
    found: list[str] = []
    for path in paths:
        place = os.path.join(base or "", path)
        check_name(place)
        matches = [place] if os.path.exists(place) or not glob.has_magic(path) else sorted(glob.glob(place))
        if not matches or not os.path.exists(matches[0]):
            raise DataError("there is no such file or folder; in a recipe paths are relative to the recipe", file=place)
        found += matches
    return found


def open_source(paths: Sequence[str], columns: Sequence[str] = (), names: Sequence[str] = ()) -> Source:
    """`columns` are those of the path and of the label in a table; `names` those of the labels 0, 1, … in idx files."""
    sources = [_source(path, columns, names) for path in paths]
    if not sum(map(len, sources)):
        raise DataError(f"has no pictures in folders of classes ({', '.join(SUFFIXES)})", file=paths[0])
    return sources[0] if len(sources) == 1 else JoinedSource(sources)


def _source(path: str, columns: Sequence[str], names: Sequence[str]) -> Source:
    if os.path.isdir(path):
        return folder_source(path)
    if table_format(path) is not None:
        return table_source(path, columns)
    if is_idx(path):
        return IdxSource(path, names)
    raise DataError(
        "is neither a folder of classes, nor a table (CSV, TSV, JSONL) of paths and labels, nor an idx file", file=path
    )


def table_source(table: str, columns: Sequence[str] = ()) -> FileSource:
    """Rows of a path, relative to the table, and a label."""
    if columns and len(columns) != 2:
        raise DataError(f"data.columns must name a path and a label, not {', '.join(columns)}", file=table)
    folder, entries = os.path.dirname(table), []
    for row in read_table(table, [tuple(columns)] if columns else COLUMNS):
        path, label = (value.strip() for value in row.values)
        if not path or not label:
            raise DataError(
                f"has no {'label' if path else 'path'}; fill it in or remove the row", file=row.file, line=row.line
            )
        entries.append(Entry(os.path.join(folder, path), label, row.file, row.line))
    return FileSource(entries)
