from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_pictures import write_folder, write_idx

from headwise.errors import DataError
from headwise.image import sources
from headwise.image.reading import BadPicture, as_pixels
from headwise.image.sources import Entry, FileSource, IdxSource, JoinedSource, folder_source


def test_a_folder_per_class_in_a_fixed_order(tmp_path: Path) -> None:
    write_folder(tmp_path, {"dog": 3, "cat": 2})
    (tmp_path / "cat/deep").mkdir()
    Image.new("L", (5, 5), 7).save(tmp_path / "cat/deep/z.JPG")
    for ignored in ("cat/.hidden.png", "dog/Thumbs.db", ".git"):
        (tmp_path / ignored).touch()
    (tmp_path / "dog/notes.txt").touch()
    source = folder_source(str(tmp_path))
    assert source.labels() == ["cat"] * 3 + ["dog"] * 3
    assert [Path(entry.path).name for entry in source.entries][:3] == ["0.png", "1.png", "z.JPG"]
    assert source.ignored == [str(tmp_path / "dog/notes.txt")]
    assert source.empty_classes == []
    found = list(source.pictures(as_pixels))
    assert [picture.label for picture in found] == source.labels()
    assert found[2].size == (5, 5)
    assert found[2].grey
    assert not found[0].grey


def test_empty_classes_are_known(tmp_path: Path) -> None:
    write_folder(tmp_path, {"cat": 1, "dog": 0})
    assert folder_source(str(tmp_path)).empty_classes == [str(tmp_path / "dog")]


def test_pictures_outside_of_a_class_are_refused(tmp_path: Path) -> None:
    Image.new("L", (5, 5)).save(tmp_path / "lost.png")
    with pytest.raises(DataError, match=r"lost.png: is not in the folder of a class"):
        folder_source(str(tmp_path))


def test_a_bad_picture_is_passed_on_with_its_reason(tmp_path: Path) -> None:
    write_folder(tmp_path, {"cat": 3})
    (tmp_path / "cat/1.png").write_bytes(b"no picture")
    found = list(folder_source(str(tmp_path)).pictures(as_pixels))
    assert isinstance(found[1].pixels, BadPicture)
    assert found[1].pixels.reason == "not-a-picture"
    assert [isinstance(picture.pixels, np.ndarray) for picture in found] == [True, False, True]


def test_many_pictures_come_in_order_though_all_cores_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_AHEAD", 4)
    monkeypatch.setattr(sources, "decoding_cores", lambda: 3)
    entries = []
    for number in range(50):
        file = tmp_path / f"{number}.png"
        Image.new("L", (3, 3), number).save(file)
        entries.append(Entry(str(file), "x", str(file), 1))
    found = [int(picture.pixels[0, 0, 0]) for picture in FileSource(entries).pictures(as_pixels)]  # type: ignore[index]
    assert found == list(range(50))


def test_reading_may_stop_in_the_middle(tmp_path: Path) -> None:
    write_folder(tmp_path, {"cat": 40})
    pictures = folder_source(str(tmp_path)).pictures(as_pixels)
    assert next(pictures).label == "cat"
    pictures.close()  # type: ignore[attr-defined]


def test_idx_files_have_numbers_or_the_names_given(tmp_path: Path) -> None:
    images = write_idx(tmp_path, np.arange(3 * 4 * 4).reshape(3, 4, 4), [2, 0, 1])
    source = IdxSource(images)
    assert source.labels() == ["2", "0", "1"]
    assert len(source) == 3
    found = list(source.pictures(as_pixels))
    assert found[1].pixels.tolist() == np.arange(16, 32).reshape(4, 4, 1).tolist()  # type: ignore[union-attr]
    assert (found[1].file, found[1].line, found[1].label) == (images, 2, "0")
    named = IdxSource(images, ["shirt", "shoe", "bag"])
    assert named.labels() == ["bag", "shirt", "shoe"]
    assert named.fingerprint() != source.fingerprint()


def test_labels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    images = write_idx(tmp_path, np.zeros((3, 4, 4)), [2, 0])
    with pytest.raises(DataError, match="has 2 labels for 3 pictures"):
        IdxSource(images)
    images = write_idx(tmp_path, np.zeros((2, 4, 4)), [2, 0])
    with pytest.raises(DataError, match=r"has the label 2, but only 2 classes have names"):
        IdxSource(images, ["a", "b"])
    with pytest.raises(DataError, match="not that of pictures"):
        IdxSource(write_idx(tmp_path, np.zeros((2, 4, 4, 5)), [2, 0]))


def test_sources_can_be_joined(tmp_path: Path) -> None:
    write_folder(tmp_path / "folder", {"1": 2})
    images = write_idx(tmp_path, np.zeros((2, 4, 4)), [1, 0])
    joined = JoinedSource([folder_source(str(tmp_path / "folder")), IdxSource(images)])
    assert joined.labels() == ["1", "1", "1", "0"]
    assert [picture.label for picture in joined.pictures(as_pixels)] == joined.labels()
    assert len(joined) == 4


def test_the_fingerprint_is_of_content_and_labels(tmp_path: Path) -> None:
    write_folder(tmp_path / "a", {"x": 2, "y": 1})
    write_folder(tmp_path / "b", {"x": 2, "y": 1})
    first = folder_source(str(tmp_path / "a")).fingerprint()
    assert folder_source(str(tmp_path / "b")).fingerprint() == first
    (tmp_path / "b/x/0.png").rename(tmp_path / "b/y/1.png")
    assert folder_source(str(tmp_path / "b")).fingerprint() != first
    (tmp_path / "a/x/0.png").unlink()
    (tmp_path / "a/x/0.png").symlink_to("nowhere")
    assert folder_source(str(tmp_path / "a")).fingerprint() != first
