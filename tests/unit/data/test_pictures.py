from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_pictures import write_folder, write_idx

from headwise.data.pictures import open_source, picture_paths, table_source
from headwise.errors import DataError
from headwise.image.reading import as_pixels


def test_folders_tables_and_idx_files_are_told_apart(tmp_path: Path) -> None:
    write_folder(tmp_path / "folder", {"cat": 2, "dog": 1})
    images = write_idx(tmp_path, np.zeros((2, 4, 4)), [1, 0])
    (tmp_path / "table.csv").write_text("file_name,label\nfolder/cat/1.png,tiger\n")
    assert open_source([str(tmp_path / "folder")]).labels() == ["cat", "cat", "dog"]
    assert open_source([images], names=["no", "yes"]).labels() == ["yes", "no"]
    joined = open_source([str(tmp_path / "table.csv"), str(tmp_path / "folder")])
    assert joined.labels() == ["tiger", "cat", "cat", "dog"]
    assert [picture.label for picture in joined.pictures(as_pixels)] == joined.labels()


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("columns", [("path", "label"), ("picture", "class")])
def test_a_table_names_paths_relative_to_itself(tmp_path: Path, kind: str, columns: tuple[str, str]) -> None:
    write_folder(tmp_path / "all", {"x": 2})
    rows = [("all/x/0.png", "a"), ("all/x/1.png", "b"), (str(tmp_path / "all/x/0.png"), "c")]
    separator = "\t" if kind == "tsv" else ","
    lines = [separator.join(columns), *(separator.join(row) for row in rows)]
    if kind == "jsonl":
        lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    (tmp_path / f"labels.{kind}").write_text("\n".join(lines) + "\n")
    source = table_source(str(tmp_path / f"labels.{kind}"), () if columns[0] == "path" else columns)
    found = list(source.pictures(as_pixels))
    assert [picture.label for picture in found] == ["a", "b", "c"]
    first = 1 if kind == "jsonl" else 2
    assert [picture.line for picture in found] == [first, first + 1, first + 2]
    assert np.array_equal(found[0].pixels, found[2].pixels)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("path,label\nx.png,\n", (), r"labels.csv:2: has no label"),
        ("path,label\n,cat\n", (), r"labels.csv:2: has no path"),
        ("path,label\nx.png,cat\n", ("path",), "must name a path and a label"),
        ("a,b\nx.png,cat\n", (), r"names a, b, but file_name, label"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, text: str, columns: tuple[str, ...], message: str
) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        table_source(str(tmp_path / "labels.csv"), columns)


def test_what_has_no_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no pictures in folders of classes"):
        open_source([str(tmp_path)])
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match="is neither a folder of classes, nor a table"):
        open_source([str(tmp_path / "notes.txt")])


def test_globs_are_expanded_and_missing_paths_named(tmp_path: Path) -> None:
    for name in ("b-idx3-ubyte", "a-idx3-ubyte"):
        (tmp_path / name).touch()
    assert picture_paths(["*-idx3-*"], tmp_path) == [str(tmp_path / "a-idx3-ubyte"), str(tmp_path / "b-idx3-ubyte")]
    for path in ("none", "*.gz"):
        with pytest.raises(DataError, match="there is no such file or folder"):
            picture_paths([path], tmp_path)
