from __future__ import annotations

from pathlib import Path

import pytest

from headwise.config.schema import Filters
from headwise.data.rows import LabelCodes, Table, TableRows, ordered
from headwise.errors import DataError

SIDES = ("text", "label")


def table(folder: Path, *files: str, sides: tuple[str, ...] = SIDES) -> Table:
    paths = []
    for number, text in enumerate(files):
        path = folder / f"{number}.csv"
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    return Table(tuple(paths), sides, sides)


def content(rows: TableRows) -> list[tuple[int, ...] | tuple[int, str, str]]:
    return [
        (int(line), text, label)
        for chunk in rows
        for line, text, label in zip(chunk.lines, chunk.texts["text"], chunk.texts["label"], strict=True)
    ]


def test_rows_carry_line_numbers_through_all_files_and_are_counted_exactly(tmp_path: Path) -> None:
    rows = TableRows(table(tmp_path, "text,label\na,x\n,x\nb,y\n", 'text,label\n"c\nd",x\ne,\nf,y\n'), Filters())
    assert content(rows) == [(2, "a", "x"), (4, "b", "y"), (6, "c\nd", "x"), (9, "f", "y")]
    assert [lines for _, lines in rows.files] == [4, 5]
    assert (rows.counts.lines, rows.counts.kept, rows.counts.dropped) == (6, 4, {"empty": 2})


def test_a_label_that_was_not_learned_is_refused_with_its_place(tmp_path: Path) -> None:
    rows = TableRows(table(tmp_path, "text,label\na,x\nb,z\n"), Filters(), ["x", "y"])
    with pytest.raises(DataError, match=r"0\.csv:3: the label 'z' does not occur in the training table"):
        list(rows)


def test_the_parts_of_a_table_have_their_share_of_every_label_and_no_text_in_common(tmp_path: Path) -> None:
    lines = [f"text {n},{'rare' if n < 20 else 'common'}" for n in range(200)]
    lines += ["Text 7 ,rare", "text  150,common"]  # the same apart from case and spaces
    whole = table(tmp_path, "\n".join(["text,label", *lines]) + "\n")
    training, validation = (content(TableRows(part, Filters())) for part in whole.split(0.1))
    assert len(training) + len(validation) == len(lines)
    assert {row[0] for row in training} | {row[0] for row in validation} == set(range(2, 204))
    texts = [{" ".join(str(row[1]).lower().split()) for row in part} for part in (training, validation)]
    assert not texts[0] & texts[1]
    held = [row[2] for row in validation]
    assert held.count("rare") in (2, 3)
    assert held.count("common") in (18, 19)
    assert content(TableRows(whole.split(0.1)[1], Filters())) == validation


def test_duplicates_are_dropped_where_the_recipe_says_so(tmp_path: Path) -> None:
    rows = TableRows(table(tmp_path, "text,label\na,x\na,x\na,y\n"), Filters(duplicates=True))
    assert [row[1:] for row in content(rows)] == [("a", "x"), ("a", "y")]
    assert rows.counts.dropped == {"duplicates": 1}


def test_labels_are_numbered_by_their_names() -> None:
    assert ordered(["b", "a", "b", "10"]) == ("10", "a", "b")
    assert ordered(["10", "9", "1"]) == ("1", "9", "10")
    codes = LabelCodes(["neg", "pos"])
    encoded = codes.encode_ragged(["pos", "neg", "pos"])
    assert (codes.size, encoded.tokens.tolist(), encoded.lengths.tolist()) == (2, [1, 0, 1], [1, 1, 1])
