"""`headwise plot`: the curves of runs, from their logs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from verbs import run, start

from headwise.workflows.plot import read_course


def write(directory: Path, *records: dict[str, Any], speeds: bool = True) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    if speeds:
        times = [{"step": r["step"], "tokens_per_second": 900.0} for r in records if r["event"] == "train"]
        (directory / "times.jsonl").write_text("".join(json.dumps(time) + "\n" for time in times))
    return directory


def course(best: float = 2.0) -> list[dict[str, Any]]:
    training = [{"event": "train", "step": s, "log_loss": 8 - s / 50, "rate": s * 1e-5} for s in range(10, 210, 10)]
    validation = [
        {"event": "validation", "step": s, "log_loss": best + (200 - s) / 100, "bleu": s / 10, "chrf": s / 5}
        for s in (100, 200)
    ]
    return [*training, *validation, {"event": "end", "step": 200}]


def test_a_run_is_drawn_with_all_its_panels_without_torch(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", *course())
    process = start("plot", directory, "--output", tmp_path / "curves.svg")
    _, err = process.communicate()
    assert err.decode() == f"wrote {tmp_path / 'curves.svg'}\ntorch imported: False\n"
    drawn = (tmp_path / "curves.svg").read_text(encoding="utf-8")
    for text in ("Loss", "perplexity", "training", "validation, best 2 at 200", "Validation BLEU and chrF",
                 "BLEU, best 20 at 200", "chrF, best 40 at 200", "Learning rate", "Speed"):  # fmt: skip
        assert f">{text}<" in drawn, text


def test_several_runs_are_drawn_together_and_named_apart(tmp_path: Path) -> None:
    runs = [write(tmp_path / "a/run", *course(2.0)), write(tmp_path / "b/run", *course(3.0))]
    assert run("plot", *runs, "--output", tmp_path / "both.svg").code == 0
    drawn = (tmp_path / "both.svg").read_text(encoding="utf-8")
    assert "a/run: validation, best 2 at 200" in drawn
    assert "b/run: validation, best 3 at 200" in drawn
    assert str(tmp_path) not in drawn, "a long path would leave no room for the curves"


def test_a_png_is_a_png_and_the_default_is_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run", *course())
    assert run("plot", "run").code == 0
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_language_model_has_no_scores_and_a_young_run_no_validation(tmp_path: Path) -> None:
    young = write(tmp_path / "young", {"event": "train", "step": 5, "log_loss": 9.0, "rate": 0.1}, speeds=False)
    assert run("plot", young, "--output", tmp_path / "young.svg").code == 0
    drawn = (tmp_path / "young.svg").read_text(encoding="utf-8")
    assert "BLEU" not in drawn
    assert "Speed" not in drawn
    assert ">training<" in drawn


def test_a_line_that_is_being_written_is_passed_over_and_a_later_record_of_an_update_counts(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", *course())
    with open(directory / "log.jsonl", "a", encoding="utf-8") as stream:
        stream.write('{"event": "train", "step": 10, "log_loss": 1.0, "rate": null}\n{"event": "tra')
    found = read_course(directory, "run")
    assert found.training[0] == list(range(10, 210, 10))
    assert found.training[1][0] == 1.0
    assert math.isnan(found.rate[1][0])
    assert run("plot", directory, "--output", tmp_path / "curves.png").code == 0


def test_a_run_of_nothing_but_infinite_losses_can_be_drawn(tmp_path: Path) -> None:
    directory = write(
        tmp_path / "run",
        {"event": "train", "step": 1, "log_loss": 1e30, "rate": 1e30},
        {"event": "validation", "step": 1, "log_loss": None, "bleu": 0.0},
    )
    assert run("plot", directory, "--output", tmp_path / "curves.png").code == 0


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        ("", "has nothing to plot yet"),
        ('{"event": "end", "step": 1}\n', "has nothing to plot yet"),
        ('{"event": "train"\n{}\n', "log.jsonl:1: not a record"),
        ("{}\n[1]\n", "log.jsonl:2: not a record"),
        ('{"event": "train", "log_loss": 1.0}\n', "log.jsonl:1: this record has no number for step"),
        ('{"event": "train", "step": 1, "log_loss": "low"}\n', "no number for step or log_loss"),
        ("\x00" * 20 + "\n", "log.jsonl:1: not a record"),
        (b"\xff\xfe\n", "it is not UTF-8"),
    ],
)
def test_a_broken_log_is_one_line_that_names_it(tmp_path: Path, log: str | bytes, problem: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(log if isinstance(log, bytes) else log.encode())
    done = run("plot", tmp_path, "--output", tmp_path / "curves.png")
    assert (done.code, done.out) == (2, "")
    assert problem in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "curves.png").exists()


def test_wrong_calls_are_one_line_each(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", *course())
    assert "has no log.jsonl" in run("plot", tmp_path).err
    assert "none does not exist" in run("plot", tmp_path / "none").err
    assert "must end in .png or .svg" in run("plot", directory, "--output", tmp_path / "curves.gif").err
    assert "no such folder" in run("plot", directory, "--output", tmp_path / "no/curves.png").err
