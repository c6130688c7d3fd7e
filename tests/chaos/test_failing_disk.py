"""Whichever step on the disk fails, of a save or of preparing text: the state before is whole, one line says why."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import torch
from failing_disk import contents, failing, full_disk
from small_recipe import write_small_recipe
from test_damage import checkpoint  # noqa: F401  (a fixture)

from headwise.bundle.checkpoint import list_checkpoints, newest_good, open_checkpoint, save_checkpoint
from headwise.bundle.directory import copy_files
from headwise.config.recipe import load_recipe
from headwise.errors import HeadwiseError, WorkFailed
from headwise.workflows.prepare import prepare


def save(folder: Path, source: Path, step: int) -> None:
    def model(new: Path) -> None:
        new.mkdir()
        copy_files(source / "model", new)

    save_checkpoint(folder, step, model, {"optimizer:x": torch.arange(3000.0)}, {"step": step})


def check_intact(folder: Path, source: Path) -> None:
    """The checkpoint before is whole; of the one that failed there is all or nothing."""
    open_checkpoint(source)
    damaged: list[HeadwiseError] = []
    assert newest_good(folder, damaged.append) is not None
    assert damaged == []


def test_each_step_of_a_save_may_fail(checkpoint: Path) -> None:  # noqa: F811
    folder = checkpoint.parent
    with failing(0) as steps:
        save(folder, checkpoint, 8)
    assert steps.done > 15
    failed = 0
    for number in range(1, steps.done + 1):
        with failing(number), suppress(WorkFailed):
            save(folder, checkpoint, 100 + number)
            failed -= 1  # to make a folder that is already there may fail
        failed += 1
        check_intact(folder, checkpoint)
    assert failed >= steps.done - 1
    save(folder, checkpoint, 9999)  # the disk is well again
    assert list_checkpoints(folder)[-1][0] == 9999


def test_the_disk_may_be_full_after_any_number_of_bytes(checkpoint: Path) -> None:  # noqa: F811
    folder = checkpoint.parent
    for number, most in enumerate((0, 1, 100, 500, 1000, 2000, 5000, 10_000)):
        with full_disk(most), pytest.raises(HeadwiseError, match="could not write"):
            save(folder, checkpoint, 200 + number)
        check_intact(folder, checkpoint)
        assert list_checkpoints(folder) == [(7, checkpoint)]


def test_each_step_of_preparing_text_may_fail_and_the_next_attempt_succeeds(tmp_path: Path) -> None:
    recipe, base = load_recipe(write_small_recipe(tmp_path))
    with failing(0) as steps:
        prepare(recipe, base, tmp_path / "whole")
    assert steps.done > 15
    expected = contents(tmp_path / "whole")
    for number in range(1, steps.done + 1):
        cache = tmp_path / f"cache-{number}"
        with failing(number), suppress(WorkFailed):
            prepare(recipe, base, cache)
        prepare(recipe, base, cache)
        assert contents(cache) == expected
