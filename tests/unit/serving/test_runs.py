"""Run directories as the page sees them, while they are being written."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

from headwise.serving.runs import list_runs
from headwise.training.verdict import verdict


def a_run(folder: Path, name: str, lines: str) -> Path:
    path = folder / name
    path.mkdir()
    (path / "log.jsonl").write_text(lines)
    (path / "recipe.toml").write_text("[training]\nsteps = 10\n")
    return path


def records(steps: range) -> str:
    return "".join(json.dumps({"event": "train", "step": step, "loss": 1.0}) + "\n" for step in steps)


def test_records_start_at_a_given_line_and_an_unfinished_line_is_left_out(tmp_path: Path) -> None:
    path = a_run(tmp_path, "one", records(range(3)) + '{"event": "train", "st')
    run = list_runs(tmp_path)["one"]
    first, following = run.records(0)
    assert ([record["step"] for record in first], following) == ([0, 1, 2], 3)
    assert run.records(3) == ([], 3)
    (path / "log.jsonl").write_text(records(range(5)))
    later, following = run.records(3)
    assert ([record["step"] for record in later], following) == ([3, 4], 5)
    (path / "log.jsonl").write_text(records(range(2)))  # a resumed run writes the same lines again
    assert run.records(5) == ([], 5)


def test_damaged_lines_and_nan_do_no_harm(tmp_path: Path) -> None:
    a_run(tmp_path, "one", '{"event": "train", "step": 1, "loss": NaN}\nnot json\n[1]\n{"event": "end", "step": 2}\n')
    found, following = list_runs(tmp_path)["one"].records(0)
    assert found == [{"event": "train", "step": 1, "loss": None}, {"event": "end", "step": 2}]
    assert following == 4


def test_the_state_of_a_run(tmp_path: Path) -> None:
    path = a_run(tmp_path, "one", records(range(4)))
    assert list_runs(tmp_path)["one"].summary()["state"] == "stopped"
    with (path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        summary = list_runs(tmp_path)["one"].summary()
        assert (summary["state"], summary["step"], summary["steps"]) == ("running", 3, 10)
    (path / "finished.json").write_text("{}")
    assert list_runs(tmp_path)["one"].summary()["state"] == "finished"


def test_a_run_that_did_not_learn_is_not_called_finished(tmp_path: Path) -> None:
    path = a_run(tmp_path, "one", records(range(4)))
    figures = [{"event": "train", "step": step, "log_loss": loss} for step, loss in ((10, 8.0), (20, 7.95))]
    for said, state in ((verdict(figures), "failed"), (verdict([]), "failed"), ("it learned", "finished")):
        (path / "finished.json").write_text(json.dumps({"verdict": said}))
        run = list_runs(tmp_path)["one"]
        assert (run.state, run.verdict) == (state, said)
    (path / "finished.json").write_text("[damaged")
    assert (list_runs(tmp_path)["one"].state, list_runs(tmp_path)["one"].verdict) == ("finished", "")


def test_a_folder_of_runs_a_run_itself_or_none(tmp_path: Path) -> None:
    path = a_run(tmp_path, "one", "")
    (tmp_path / "no run").mkdir()
    assert list(list_runs(tmp_path)) == ["one"]
    assert list(list_runs(path)) == ["one"]
    assert list_runs(None) == {}
