from __future__ import annotations

from pathlib import Path

import pytest

from headwise.config.schema import Filters
from headwise.text.findings import Report
from headwise.text.table_report import check_table


def report(folder: Path, rows: str, filters: Filters | None = None, **held_out: str) -> Report:
    paths = {}
    for name, text in {"train": rows, **held_out}.items():
        paths[name] = folder / f"{name}.csv"
        paths[name].write_text(f"text,label\n{text}", encoding="utf-8")
    others = {name: [str(paths[name])] for name in held_out}
    return check_table([str(paths["train"])], ("text", "label"), others, filters=filters or Filters())


GOOD = "".join(f"text {n},{'ab'[n % 2]}\n" for n in range(40))


def test_a_good_table_has_no_findings_and_its_labels_are_counted(tmp_path: Path) -> None:
    found = report(tmp_path, GOOD, validation="new,a\n")
    assert (found.findings, found.unusable, found.unit) == ([], False, "rows")
    assert found.labels == {"a": 20, "b": 20}
    assert found.held_out == {"validation": 1}
    assert (found.counts.kept, found.sides[0].words) == (40, 80)


@pytest.mark.parametrize(
    ("rows", "name", "severity", "count", "line"),
    [
        (GOOD + ",a\nx,\n", "empty", "note", 2, 42),
        ("a,x\nb,x\n", "one-label", "error", 2, None),
        ("", "no-rows", "error", 0, None),
        (GOOD + "x,A\ny,A\n", "label-spelling", "warning", 1, 42),
        (GOOD + "x, a\n", "label-spelling", "warning", 1, 42),
        (GOOD + "text 1,b\n", "duplicates", "warning", 1, 42),
        (GOOD + "Text  1,a\n", "contradictions", "warning", 1, 42),
        (GOOD + "x,c\n", "rare-labels", "warning", 1, 42),
        (GOOD + "x,y,z\n", "format", "error", 1, 42),
        ("".join(f"one of many,{n}\n" for n in range(40)), "many-labels", "error", 40, None),
        ("".join(f"t{n},{'a' if n else 'b'}\n" for n in range(30)), "balance", "note", 29, 2),
        ("a,\nb,\nc,x\nd,y\n,y\n", "empty", "error", 3, 2),
    ],
)
def test_each_fault_is_found_with_its_line(
    tmp_path: Path, rows: str, name: str, severity: str, count: int, line: int | None
) -> None:
    finding = report(tmp_path, rows).finding(name)
    assert finding is not None
    assert (finding.severity, finding.count) == (severity, count)
    if line is not None:
        assert finding.examples[0].line == line
    assert finding.remedy
    assert "\n" not in finding.line()


def test_texts_in_both_tables_and_labels_that_cannot_be_learned_are_found(tmp_path: Path) -> None:
    found = report(tmp_path, GOOD, validation="new,a\nTEXT 3,b\n", test="other,c\n")
    overlap, labels = found.finding("validation-overlap"), found.finding("test-labels")
    assert overlap is not None
    assert (overlap.severity, overlap.count, overlap.examples[0].line) == ("warning", 1, 3)
    assert "train.csv:5" in overlap.examples[0].text
    assert labels is not None
    assert (labels.severity, labels.examples[0].line) == ("error", 2)
    assert found.unusable


def test_a_column_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("title,label\na,b\n")
    found = check_table([str(path)], ("text", "label"), {}, filters=Filters())
    assert found.unusable
    finding = found.finding("columns")
    assert finding is not None
    assert "title, label" in finding.message


def test_every_spelling_of_a_label_has_its_line(tmp_path: Path) -> None:
    finding = report(tmp_path, GOOD + "x,A\ny, a\nz,A\n").finding("label-spelling")
    assert finding is not None
    assert finding.message == "1 label has spellings that differ only by case or spaces: 'a' = 'A' = ' a'"
    assert [(one.line, one.text) for one in finding.examples] == [(43, "' a'"), (42, "'A'"), (2, "'a'")]


@pytest.mark.parametrize(
    ("content", "name"), [(b"", "empty-file"), ("text,label\na,b\n".encode("utf-16"), "encoding"), (b"\n", "columns")]
)
def test_a_table_without_a_line_that_can_be_read_has_one_finding(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    found = check_table([str(tmp_path / "t.csv")], ("text", "label"), {}, filters=Filters())
    assert [finding.name for finding in found.findings] == [name]


def test_rows_that_cannot_be_read_are_to_be_fixed_or_read_from_other_columns(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "a"}\nnope\n')
    (finding,) = check_table([str(tmp_path / "t.jsonl")], ("text", "label"), {}, filters=Filters()).findings
    assert (finding.name, finding.count, finding.remedy) == ("format", 2, "fix them, or set data.columns")


def test_one_row_is_not_rows(tmp_path: Path) -> None:
    found = report(tmp_path, GOOD + "x,c\nText  1,a\ntext 1,b\n,a\n", validation="new,z\n")
    said = {finding.name: finding.message for finding in found.findings}
    assert said["rare-labels"] == "1 label has fewer than 5 rows: 'c'"
    assert said["contradictions"] == "1 row (2.3%) repeats a text with another label"
    assert said["duplicates"] == "1 row (2.3%) repeats an earlier row"
    assert said["empty"] == "1 row (2.3%) has an empty text or label"
    assert said["validation-labels"] == "1 label of the validation table without a row in the training table"


def test_dropped_rows_are_counted_by_their_reason(tmp_path: Path) -> None:
    found = report(tmp_path, GOOD + ",a\ntext 1,b\n", Filters(duplicates=True))
    assert found.counts.dropped == {"empty": 1, "duplicates": 1}
    assert found.counts.lines == 42
