from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_pictures import write_folder, write_idx

from headwise.data import pixel_store
from headwise.data.cached import StoreDamagedError, cached
from headwise.data.pictures import open_source
from headwise.data.pixel_store import PixelStore, part_of, write_pixels
from headwise.errors import DataError
from headwise.image.preprocessing import Preprocessing

RGB = Preprocessing(size=8, mean=[0.5] * 3, std=[0.5] * 3)


def stored(folder: Path, cache: Path, how: Preprocessing = RGB) -> PixelStore:
    source = open_source([str(folder)])
    codes = {label: number for number, label in enumerate(sorted(set(source.labels())))}

    def write(directory: Path) -> None:
        write_pixels(directory, source.pictures(how.fitted), codes, (how.size, how.size, how.channels), {"a": 1})

    return cached(cache, "images-key", write, PixelStore, "pixel store")


def test_pictures_come_back_with_labels_and_places(tmp_path: Path) -> None:
    write_folder(tmp_path / "data", {"cat": 3, "dog": 2}, size=8)
    (tmp_path / "data/cat/1.png").write_bytes(b"broken")
    store = stored(tmp_path / "data", tmp_path)
    assert (len(store), store.size, store.channels) == (4, 8, 3)
    assert store.labels().tolist() == [0, 0, 1, 1]
    expected = [picture.pixels for picture in open_source([str(tmp_path / "data")]).pictures(RGB.fitted)]
    assert np.array_equal(store.pixels(np.array([3, 0])), np.stack([expected[4], expected[0]]))
    assert store.place(2) == (str(tmp_path / "data/cat/2.png"), 1)
    assert store.numbers(np.array([1])).tolist() == [2]
    assert store.counts.dropped == {"not-a-picture": 1}
    assert store.counts.lines == 5
    with pytest.raises(DataError, match="there is no picture 9; there are 4"):
        store.place(9)


def test_pictures_of_idx_files_are_named_by_their_number(tmp_path: Path) -> None:
    images = write_idx(tmp_path, np.random.default_rng(0).integers(0, 256, (5, 8, 8)), [0, 1, 1, 0, 1])
    grey = Preprocessing(size=8, channels=1)
    store = stored(Path(images), tmp_path / "cache", grey)
    assert store.place(4) == (images, 4)
    assert store.pixels(np.arange(5)).shape == (5, 8, 8, 1)


def test_parts_are_stores_of_their_own(tmp_path: Path) -> None:
    write_folder(tmp_path / "data", {"cat": 4, "dog": 4}, size=8)
    store = stored(tmp_path / "data", tmp_path)
    part = part_of(store, "validation", np.array([6, 1]))
    again = PixelStore(part.directory)
    for one in (part, again):
        assert len(one) == 2
        assert one.labels().tolist() == [1, 0]
        assert np.array_equal(one.pixels(np.arange(2)), store.pixels(np.array([6, 1])))
        assert one.place(int(one.numbers(np.array([0]))[0])) == store.place(7)
        assert np.array_equal(one.picture_hashes(), store.picture_hashes()[[6, 1]])


def test_equal_pictures_have_equal_hashes(tmp_path: Path) -> None:
    write_folder(tmp_path / "data", {"cat": 3}, size=8)
    (tmp_path / "data/cat/9.png").write_bytes((tmp_path / "data/cat/1.png").read_bytes())
    hashes = stored(tmp_path / "data", tmp_path).picture_hashes().tolist()
    assert hashes[1] == hashes[3]
    assert len(set(hashes)) == 3


def test_mean_and_deviation_are_those_of_all_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixel_store, "_BLOCK", 3)
    write_folder(tmp_path / "data", {"cat": 5, "dog": 3}, size=8)
    store = stored(tmp_path / "data", tmp_path)
    pixels = store.pixels(np.arange(8)).reshape(-1, 3) / 255
    mean, std = store.mean_and_std()
    assert mean == pytest.approx(pixels.mean(axis=0), abs=1e-4)
    assert std == pytest.approx(pixels.std(axis=0), abs=1e-4)


def test_a_store_that_is_cut_off_is_written_again(tmp_path: Path) -> None:
    write_folder(tmp_path / "data", {"cat": 3}, size=8)
    store = stored(tmp_path / "data", tmp_path)
    pixels = store.directory / "pixels"
    pixels.write_bytes(pixels.read_bytes()[:-1])
    with pytest.raises(StoreDamagedError, match="truncated"):
        PixelStore(store.directory)
    assert len(stored(tmp_path / "data", tmp_path)) == 3
    manifest = store.directory / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(StoreDamagedError, match="format is unknown"):
        PixelStore(store.directory)


MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np
from headwise.data import pixel_store
from headwise.data.pixel_store import PixelStore, write_pixels
from headwise.image.sources import Labelled
directory, pictures, side = Path(sys.argv[1]), 2000, 128
directory.mkdir()
rng = np.random.default_rng(0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
made = (Labelled(rng.integers(0, 256, (side, side, 3), dtype=np.uint8), "a", "f", n, (side, side), False)
        for n in range(1, pictures + 1))
write_pixels(directory, made, {"a": 0}, (side, side, 3), {})
pixel_store.RELEASE_BYTES = 4 << 20
store = PixelStore(directory)
for _ in range(2):
    for start in range(0, pictures, 32):
        store.pixels(rng.integers(0, pictures, 32))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) // 1024, (directory / "pixels").stat().st_size >> 20)
"""


def test_neither_writing_nor_reading_ever_holds_all_pixels(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "store")], capture_output=True, text=True, check=True
    )
    grown, stored_megabytes = map(int, done.stdout.split())
    assert stored_megabytes > 90
    assert grown < stored_megabytes // 2, f"{grown} MB for a store of {stored_megabytes} MB"
