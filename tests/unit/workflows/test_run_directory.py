from __future__ import annotations

from pathlib import Path

import pytest

from headwise.config.recipe import build_recipe, load_recipe, print_recipe
from headwise.config.schema import Recipe
from headwise.errors import UsageError
from headwise.workflows.run_directory import RunDirectory


def recipe(**training: object) -> Recipe:
    return build_recipe({"training": {"steps": 10, **training}})


def begun(path: Path) -> RunDirectory:
    """A run that was interrupted after its first checkpoint."""
    run = RunDirectory(path)
    run.claim(recipe(), resume=False)
    step = run.checkpoints / "step-00000005"
    step.mkdir(parents=True)
    (step / "state.json").write_text("{}")
    return run


def test_a_new_directory_is_claimed_by_its_recipe(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "runs" / "new")
    run.claim(recipe(), resume=False)
    assert print_recipe(load_recipe(run.recipe)[0]) == print_recipe(recipe())
    assert not run.unfinished
    with pytest.raises(UsageError, match="holds no run to resume"):
        RunDirectory(tmp_path / "empty").claim(recipe(), resume=True)


def test_a_run_that_was_killed_before_its_first_checkpoint_is_started_by_resume(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.claim(recipe(), resume=False)
    run.claim(recipe(), resume=True)
    assert print_recipe(load_recipe(run.recipe)[0]) == print_recipe(recipe())


def test_an_interrupted_run_goes_on_with_the_same_settings_or_another_budget_only(tmp_path: Path) -> None:
    run = begun(tmp_path)
    assert run.unfinished
    run.claim(recipe(steps=20, threads=3, device="cpu"), resume=True)
    with pytest.raises(UsageError, match=r"a run of another recipe \(different: training\.learning_rate\)"):
        run.claim(recipe(learning_rate=2.0), resume=True)


def test_a_finished_run_goes_on_with_a_larger_budget_only(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.finish({"reason": "steps"})
    assert run.complete(recipe())
    with pytest.raises(UsageError, match=r"holds a finished run; .* or --set training\.steps=20 to"):
        run.claim(recipe(), resume=False)
    assert not run.complete(recipe(steps=20))
    run.claim(recipe(steps=20), resume=False)
    assert not run.finished.exists()


def test_two_processes_cannot_train_in_one_directory(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    with run.locked(), pytest.raises(UsageError, match="is being trained by another process"), run.locked():
        pass
    with run.locked():
        pass
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"), RunDirectory(tmp_path / "file").locked():
        pass
