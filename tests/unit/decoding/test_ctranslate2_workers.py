from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwise.decoding.ctranslate2_workers import Workers
from headwise.errors import ModelError


@pytest.mark.parametrize(
    ("cores", "texts", "batches"),
    [(2, 1000, [63] * 15 + [55]), (2, 187, [47] * 3 + [46]), (2, 10, [5, 5]), (1, 65, [33, 32]), (4, 3, [1, 1, 1])],
)
def test_every_worker_has_as_many_batches_of_like_size(
    tmp_path: Path, cores: int, texts: int, batches: list[int]
) -> None:
    size = _workers(tmp_path, cores).share(texts, 64)
    assert [min(size, texts - start) for start in range(0, texts, size)] == batches


def test_a_single_text_and_none_at_all_have_batches_of_one(tmp_path: Path) -> None:
    workers = _workers(tmp_path, 2)
    assert (workers.share(1, 64), workers.share(0, 64)) == (1, 1)


def test_every_core_is_a_worker_of_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _workers(tmp_path, 3).engine == (3, 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert _workers(tmp_path, 0).engine == (5, 1)


def test_a_directory_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("no model.bin")

    with pytest.raises(ModelError, match=r"ctranslate2 cannot read .*: no model\.bin"):
        Workers(refuse, tmp_path)


def _workers(directory: Path, cores: int) -> Workers:
    def shape(_: str, *, inter_threads: int, intra_threads: int, **__: Any) -> tuple[int, int]:
        return inter_threads, intra_threads

    return Workers(shape, directory, cores)
