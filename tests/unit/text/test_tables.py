from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from headwise.errors import DataError
from headwise.text.tables import Row, format_of, read_table, read_table_batches, table_format

COLUMNS = ("text", "label")


def rows(path: Path, columns: tuple[str, ...] = COLUMNS, **options: str) -> list[tuple[int, tuple[str, ...]]]:
    found = []
    for batch in read_table_batches([str(path)], columns, **options):  # type: ignore[arg-type]
        found += list(zip(batch.lines, batch.rows, strict=True))
    return found


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'id,text,label\n1,"good, really",positive\n2,bad,negative\n'),
        ("a.csv", 'id;label;text\r\n1;positive;"good, really"\r\n2;negative;bad\r\n'),
        ("a.tsv", "label\ttext\npositive\tgood, really\nnegative\tbad\n"),
        ("a.csv", "label\ttext\npositive\tgood, really\nnegative\tbad\n"),
        ("a.csv", '\ufeff"label"|"text"\npositive|good, really\nnegative|bad'),
    ],
)
def test_columns_are_found_by_their_names_whatever_the_delimiter(tmp_path: Path, name: str, text: str) -> None:
    assert rows(write(tmp_path / name, text)) == [(2, ("good, really", "positive")), (3, ("bad", "negative"))]


def test_jsonl_has_named_fields_numbers_nothing_and_nested_objects(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        '{"text": "a\\nb", "label": 1}\n\n{"label": true, "text": "c"}\n{"text": null, "label": "x"}\n',
    )
    assert rows(path) == [(1, ("a\nb", "1")), (3, ("c", "true")), (4, ("", "x"))]
    nested = write(tmp_path / "b.jsonl", '{"review": {"body": "fine"}, "stars": 4}\n')
    assert rows(nested, ("review.body", "stars")) == [(1, ("fine", "4"))]


def test_quoted_cells_hold_line_breaks_quotes_and_delimiters(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label\n"one\ntwo, ""three""",x\n\nfour,y\n')
    assert rows(path) == [(2, ('one\ntwo, "three"', "x")), (5, ("four", "y"))]


def test_a_quotation_mark_in_a_tsv_is_text(tmp_path: Path) -> None:
    assert rows(write(tmp_path / "a.tsv", 'text\tlabel\n"open\tx\n')) == [(2, ('"open', "x"))]


def test_numbers_are_columns_of_a_file_without_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "3,good,x\n4,bad,y\n")
    assert rows(path, ("2", "1")) == [(1, ("good", "3")), (2, ("bad", "4"))]
    path = write(tmp_path / "a.tsv", "3\tgood\n")
    assert rows(path, ("2", "1")) == [(1, ("good", "3"))]


def test_packed_files_and_several_files_are_read_in_order(tmp_path: Path) -> None:
    for number in (1, 2):
        with gzip.open(tmp_path / f"{number}.csv.gz", "wt", encoding="utf-8") as stream:
            stream.write(f"text,label\nt{number},l{number}\n")
    paths = [str(tmp_path / f"{number}.csv.gz") for number in (1, 2)]
    batches = list(read_table_batches(paths, COLUMNS))
    assert [batch.rows for batch in batches] == [[("t1", "l1")], [("t2", "l2")]]
    assert [(batch.file, batch.end) for batch in batches] == [(path, 2) for path in paths]


def test_long_tables_come_in_batches_that_lose_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\n" + "".join(f"t{n},l\n" for n in range(4500)))
    batches = list(read_table_batches([str(path)], COLUMNS))
    assert len(batches) == 3
    assert [row[0] for batch in batches for row in batch.rows] == [f"t{n}" for n in range(4500)]


@pytest.mark.parametrize(
    ("name", "text", "line", "words"),
    [
        ("a.csv", "title,label\nx,y\n", 1, "no column 'text'; the first row names title, label: set data.columns"),
        ("a.tsv", "title\tlabel\nx\ty\n", 1, "no column 'text'"),
        ("a.csv", "text,text,label\nx,y,z\n", 1, "several columns 'text'"),
        ("a.csv", "text,label\nx,y\nonly\n", 3, "has 1 cells, but the first row has 2"),
        ("a.tsv", "text\tlabel\nx\ty\tz\n", 2, "has 3 cells, but the first row has 2"),
        ("a.csv", 'text,label\na,b\n"never closed,x\ny,z\n', 3, "not closed"),
        ("a.csv", 'text,label\n"x" y,z\n', 2, "not valid CSV"),
        ("a.jsonl", '{"text": "a", "label": "b"}\n{"text": \n', 2, "is not JSON"),
        ("a.jsonl", '{"text": "a"}\n', 1, "no column 'label' but text"),
        ("a.jsonl", '{"text": [1], "label": "b"}\n', 1, "holds a list"),
        ("a.jsonl", '{"text": "\\ud800", "label": "b"}\n', 1, "half a surrogate pair"),
        ("a.jsonl", "[1]\n", 1, "no column 'text'"),
        ("a.jsonl", '{"text": "a", "label": "b"}\n{"text": "a"}\n', 2, "no column 'label'"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_its_place(
    tmp_path: Path, name: str, text: str, line: int, words: str
) -> None:
    path = write(tmp_path / name, text)
    with pytest.raises(DataError, match=f"^{path}:{line}: ") as caught:
        rows(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_rows_are_reported_and_left_out_where_somebody_listens(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label\na,b\nbad\n"x"y,z\nc,d\n')
    heard: list[tuple[str, int | None]] = []
    batches = read_table_batches([str(path)], COLUMNS, on_bad=lambda kind, error: heard.append((kind, error.line)))
    assert [row for batch in batches for row in batch.rows] == [("a", "b"), ("c", "d")]
    assert heard == [("format", 3), ("format", 4)]


def test_a_column_number_beyond_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has 2 columns, but column 3 is asked for"):
        rows(write(tmp_path / "a.csv", "x,y\n"), ("1", "3"))


def test_the_name_of_a_file_says_what_it_is() -> None:
    assert format_of("x/A.CSV.gz") == "csv"
    assert format_of("a.ndjson") == "jsonl"
    assert format_of("a.txt", "tsv") == "tsv"
    with pytest.raises(DataError, match=r"a\.txt: is not named like a table"):
        format_of("a.txt")


def test_the_first_of_several_sets_of_columns_that_a_table_has_is_read(tmp_path: Path) -> None:
    alternatives = (("text", "label"), ("sentence", "class"))
    path = write(tmp_path / "a.csv", "class,sentence,label\nx,one,y\n")
    assert list(read_table(path, alternatives)) == [Row(("one", "x"), str(path), 2)]
    path = write(tmp_path / "a.jsonl", '{"sentence": "a", "class": 3}\n{"label": "z", "text": "b"}\n')
    assert list(read_table(path, alternatives)) == [Row(("a", "3"), str(path), 1), Row(("b", "z"), str(path), 2)]
    path = write(tmp_path / "b.csv", "one,two\n1,2\n")
    with pytest.raises(DataError, match="names one, two, but text, label or sentence, class are needed"):
        list(read_table(path, alternatives))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_table_of_empty_lines_has_no_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="has no row of column names"):
        rows(write(tmp_path / name, "\n\n"))


def test_what_is_no_table_has_no_format() -> None:
    assert table_format("a.csv.zst") == "csv"
    assert table_format("a.wav") is None
