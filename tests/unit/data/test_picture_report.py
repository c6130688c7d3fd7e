from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from small_pictures import write_folder, write_idx

from headwise.data.picture_report import PictureReport, check_pictures
from headwise.data.pictures import open_source
from headwise.image.sources import Source


def check(training: Path, **held_out: Path) -> PictureReport:
    sources: dict[str, Source] = {name: open_source([str(path)]) for name, path in held_out.items()}
    return check_pictures(open_source([str(training)]), sources)


def test_good_pictures_have_no_findings(tmp_path: Path) -> None:
    write_folder(tmp_path, {"cat": 6, "dog": 7}, size=20)
    found = check(tmp_path)
    assert found.report.findings == []
    assert found.report.counts.kept == found.report.counts.lines == 13
    assert found.report.labels == {"dog": 7, "cat": 6}
    assert (found.side, found.grey, found.report.unit) == (20, False, "pictures")
    assert found.report.summary_lines() == ["13 pictures; 13 kept"]


def test_grey_pictures_are_known_by_their_pixels(tmp_path: Path) -> None:
    images = write_idx(tmp_path, np.random.default_rng(0).integers(0, 256, (20, 9, 7)), [0, 1] * 10)
    found = check(Path(images))
    assert (found.side, found.grey) == (7, True)


def test_unreadable_pictures_are_counted_by_reason_and_named(tmp_path: Path) -> None:
    write_folder(tmp_path, {"cat": 10, "dog": 10})
    (tmp_path / "cat/3.png").write_bytes(b"")
    (tmp_path / "dog/1.png").write_bytes(b"text")
    report = check(tmp_path).report
    assert report.counts.dropped == {"empty": 1, "not-a-picture": 1}
    assert report.counts.lines == report.counts.kept + 2 == 20
    finding = report.finding("unreadable")
    assert finding is not None
    assert finding.severity == "warning"
    assert "cat/3.png" in finding.line()
    assert not report.unusable


def test_mostly_unreadable_pictures_cannot_be_trained_on(tmp_path: Path) -> None:
    write_folder(tmp_path, {"cat": 3, "dog": 3})
    for file in tmp_path.rglob("*.png"):
        file.write_bytes(b"text")
    report = check(tmp_path).report
    assert report.unusable
    assert report.finding("nothing-left") is not None


def test_empty_classes_single_classes_and_rare_ones_are_said(tmp_path: Path) -> None:
    write_folder(tmp_path / "one", {"cat": 6, "dog": 0})
    (tmp_path / "one/cat/readme.txt").touch()
    report = check(tmp_path / "one").report
    assert report.unusable
    assert {finding.name for finding in report.findings} == {"empty-classes", "one-class", "ignored"}
    assert str(tmp_path / "one/dog") in report.finding("empty-classes").line()  # type: ignore[union-attr]
    write_folder(tmp_path / "two", {"cat": 40, "dog": 2})
    names = {finding.name: finding.severity for finding in check(tmp_path / "two").report.findings}
    assert names == {"rare-classes": "warning", "balance": "note"}


def test_copies_with_another_class_and_held_out_copies_are_found(tmp_path: Path) -> None:
    write_folder(tmp_path / "train", {"cat": 6, "dog": 6})
    write_folder(tmp_path / "val", {"cat": 4, "bird": 1}, seed=5)
    shutil.copy(tmp_path / "train/cat/0.png", tmp_path / "train/dog/9.png")
    shutil.copy(tmp_path / "train/cat/1.png", tmp_path / "val/cat/9.png")
    (tmp_path / "val/cat/2.png").write_bytes(b"text")
    report = check(tmp_path / "train", validation=tmp_path / "val").report
    assert report.held_out == {"validation": 5}
    found = {finding.name: finding for finding in report.findings}
    assert found.keys() == {
        "contradictions", "validation-overlap", "validation-classes", "validation-unreadable"
    }  # fmt: skip
    assert "val/cat/9.png" in found["validation-overlap"].line()
    assert "cat/0.png" in found["contradictions"].examples[0].text
    assert found["validation-classes"].severity == "error"
    assert found["validation-classes"].examples[0].text == "bird"
