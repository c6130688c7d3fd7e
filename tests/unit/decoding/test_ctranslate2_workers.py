from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwise.decoding.ctranslate2_workers import Workers


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


@pytest.mark.parametrize(
    ("cores", "precision", "size", "one"),
    [
        (2, "int8", 40, (2, 1)),
        (8, "int8", 40, (2, 1)),
        (1, "int8", 40, (1, 1)),
        (8, "float32", 8, (2, 1)),
        (8, "float32", 40, (1, 8)),
    ],
)
def test_a_single_text_has_all_cores_where_a_step_reads_many_weights(
    tmp_path: Path, cores: int, precision: str, size: int, one: tuple[int, int]
) -> None:
    (tmp_path / "export.json").write_text(json.dumps({"precision": precision}))
    with (tmp_path / "model.bin").open("wb") as file:
        file.truncate(size * 1_000_000)
    workers = _workers(tmp_path, cores)
    assert workers.of(1).worker == one
    assert workers.of(2).worker == (cores, 1)
    with workers.of(2):
        assert workers.of(1).worker == (cores, 1)
    assert workers.of(1).worker == one


def test_a_core_is_left_beside_a_single_text_unless_there_is_one_or_other_work(tmp_path: Path) -> None:
    workers = _workers(tmp_path, 2)
    assert workers.leave_a_core
    with workers.of(1):
        assert not workers.leave_a_core
    assert workers.leave_a_core
    assert not _workers(tmp_path, 1).leave_a_core


def test_no_core_is_left_where_a_single_text_has_all(tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text(json.dumps({"precision": "float32"}))
    with (tmp_path / "model.bin").open("wb") as file:
        file.truncate(40_000_000)
    assert not _workers(tmp_path, 2).leave_a_core


def _workers(directory: Path, cores: int) -> Workers:
    def shape(_: str, *, inter_threads: int, intra_threads: int, **__: Any) -> tuple[int, int]:
        return inter_threads, intra_threads

    return Workers(shape, directory, cores)
