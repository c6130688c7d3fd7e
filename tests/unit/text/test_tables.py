"""Tables with named columns: CSV, TSV and JSONL."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from headwise.errors import DataError
from headwise.text.tables import Row, read_table, table_format

COLUMNS = (("text", "label"), ("sentence", "class"))


def rows(file: Path) -> list[tuple[tuple[str, ...], int]]:
    return [(row.values, row.line) for row in read_table(file, COLUMNS)]


def test_cells_are_found_by_the_names_in_the_header(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,label,text\n1,yes,hello\n2,no,goodbye\n", encoding="utf-8")
    assert rows(file) == [(("hello", "yes"), 2), (("goodbye", "no"), 3)]


def test_a_quoted_cell_may_have_separators_quotes_and_line_breaks(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('text,label\n"one, ""two""\nthree",a\nfour,b\n', encoding="utf-8")
    assert rows(file) == [(('one, "two"\nthree', "a"), 2), (("four", "b"), 4)]


def test_a_compressed_tsv_and_other_column_names_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv.gz"
    file.write_bytes(gzip.compress(b"class\tsentence\nx\ty\n"))
    assert rows(file) == [(("y", "x"), 2)]


def test_json_records_are_read_and_numbers_are_text(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "a", "label": 3}\n\n{"label": "z", "text": "b", "more": null}\n', encoding="utf-8")
    assert list(read_table(file, COLUMNS)) == [Row(("a", "3"), str(file), 1), Row(("b", "z"), str(file), 3)]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", "one,two\n1,2\n", "has the columns one, two, but needs text, label or sentence, class"),
        ("a.csv", "text,label\nonly\n", ":2: has 1 cells"),
        ("a.csv", 'text,label\n"a"b,c\n', ":2: is not a row"),
        ("a.csv", "\n\n", "has no header"),
        ("a.jsonl", '{"text": "a", "label": "b"}\n{"text": "a"}\n', ":2: no text in 'label'"),
        ("a.jsonl", '{"text": "\\ud800", "label": "b"}\n', ":1: no text in 'text'"),
        ("a.jsonl", "[1]\n", ":1: not JSON"),
        ("a.jsonl", "\n", "has no record"),
        ("a.txt", "text,label\n", "is not a table"),
    ],
)
def test_what_cannot_be_read_is_named_by_file_and_line(tmp_path: Path, name: str, content: str, problem: str) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        rows(file)
    assert problem in str(caught.value)


def test_bad_rows_can_be_reported_and_skipped(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text,label\nonly\na,b\n", encoding="utf-8")
    found: list[str] = []
    kept = list(read_table(file, COLUMNS, on_bad=lambda kind, error: found.append(f"{kind} {error.line}")))
    assert [row.values for row in kept] == [("a", "b")]
    assert found == ["format 2"]


def test_the_format_goes_by_the_name() -> None:
    assert [table_format(n) for n in ("a.csv", "A.TSV.gz", "a.ndjson", "a.txt")] == ["csv", "tsv", "jsonl", None]
