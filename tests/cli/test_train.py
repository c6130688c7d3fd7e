"""`headwise train` as a user has it: started, stopped, locked, spoiled, out of numbers, out of disk."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import Command
from small_recipe import write_small_recipe

from headwise.bundle.checkpoint import list_checkpoints, newest_good, open_checkpoint
from headwise.bundle.directory import open_bundle
from headwise.training.hooks import Log, Save
from headwise.training.loop import Trainer

TRAINING = {"steps": 12, "validate_every": 6, "save_every": 4}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_small_recipe(folder, training=TRAINING)
    return folder


def train(corpus: Path, run: Path, *settings: str) -> list[object]:
    """The arguments of the command."""
    return ["train", corpus / "recipe.toml", "--output", run, *(word for s in settings for word in ("--set", s))]


def no_leftovers(run: Path) -> bool:
    return not [path for path in run.rglob(".*") if ".new-" in path.name or ".old-" in path.name]


def test_a_recipe_trains_and_says_plainly_what_it_did(headwise: Command, corpus: Path, tmp_path: Path) -> None:
    code, out, err = headwise(*train(corpus, tmp_path / "run"))
    assert (code, out) == (0, "")
    assert "\x1b" not in err
    assert "\r" not in err
    lines = err.splitlines()
    assert any(line.startswith("training ") and "parameters, from update 0 of 12" in line for line in lines)
    updates = [line.split() for line in lines if line.startswith("update ")]
    assert [words[1] for words in updates] == ["2", "4", "6", "8", "10", "12"]
    assert updates[0][2::2] == ["loss", "ppl", "left", "lr", "tokens/s", "padding"]
    assert any(line.startswith("validation at update 6: log-loss ") and "chrf" in line for line in lines)
    assert lines[-4].startswith("finished after 12 updates")
    assert lines[-3].startswith("it did not learn to translate: BLEU 0.0"), "one sentence says how it went"
    assert lines[-2] == f"model: {tmp_path / 'run/model'}"
    card = open_bundle(tmp_path / "run/model").card
    assert card["validation"]["step"] in (6, 12)
    code, _, err = headwise(*train(corpus, tmp_path / "run"))
    assert code == 2
    assert "holds a finished run" in err


def test_control_c_saves_and_the_same_command_finishes(headwise: Command, corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = train(
        corpus,
        run,
        "training.steps=150",
        "training.log_every=1",
        "training.validate_every=1000",
        "training.save_every=200",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "headwise", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    while not (line := process.stderr.readline()).startswith("update "):
        assert line, "the run ended before its first update"
    code, _, err = headwise(*arguments)
    assert code == 2
    assert f"{run} is being trained by another process" in err
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    (stopped,) = [line for line in err.splitlines() if line.startswith("stopped at update ")]
    step = int(stopped.split()[3])
    assert 1 <= step < 150
    assert open_checkpoint(run / f"checkpoints/step-{step:08d}").state["step"] == step
    code, _, err = headwise(*arguments)
    assert code == 0
    assert f"resuming from update {step} " in err
    assert "finished after 150 updates" in err


def test_control_c_in_the_last_update_loses_nothing_of_the_end(
    headwise: Command, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ("training.steps=7", "training.log_every=5")
    assert headwise(*train(corpus, tmp_path / "alone", *settings))[0] == 0
    check = Trainer._check_budget

    def stop_and_check(trainer: Trainer) -> None:
        if trainer.step == 7:
            signal.raise_signal(signal.SIGINT)
        check(trainer)

    monkeypatch.setattr(Trainer, "_check_budget", stop_and_check)
    code, _, err = headwise(*train(corpus, tmp_path / "stopped", *settings))
    assert code == 0
    assert "finished after 7 updates" in err
    assert (tmp_path / "stopped/log.jsonl").read_text() == (tmp_path / "alone/log.jsonl").read_text()


SECOND_SIGNAL = """
import signal, sys
from headwise.bundle import checkpoint
from headwise.cli.main import run
from headwise.training.loop import Trainer

update, write = Trainer._update, checkpoint.write_json

def update_and_stop(trainer, *arguments):
    if trainer.step == 5:
        signal.raise_signal(signal.SIGTERM)
    update(trainer, *arguments)

def write_and_stop(path, value):
    write(path, value)
    if "step-00000006" in str(path):  # the save that the first signal asked for is half done
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("still alive")

Trainer._update, checkpoint.write_json = update_and_stop, write_and_stop
sys.argv = ["headwise", *sys.argv[1:]]
run()
"""


def test_a_second_signal_leaves_at_once_inside_a_save_and_breaks_nothing(
    headwise: Command, corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    arguments = train(corpus, run, "training.validate_every=100")
    command = [sys.executable, "-c", SECOND_SIGNAL, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 143, done.stderr
    assert not no_leftovers(run)  # it was inside of a save
    assert [step for step, _ in list_checkpoints(run / "checkpoints")] == [4]
    code, _, err = headwise(*arguments)
    assert code == 0
    assert "resuming from update 4 " in err
    assert no_leftovers(run)


def test_spoiled_text_is_refused_before_training(headwise: Command, corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "spoiled"
    shutil.copytree(corpus, folder)
    lines = (folder / "train.zh").read_text(encoding="utf-8").splitlines()
    (folder / "train.zh").write_text("\n".join(lines[:-3]) + "\n", encoding="utf-8")
    code, _, err = headwise(*train(folder, tmp_path / "run"))
    assert code == 2
    assert "line-counts" in err or "250 lines" in err
    assert err.splitlines()[-1].startswith("headwise: error: ")
    assert "headwise check" in err.splitlines()[-1]
    assert not (tmp_path / "run/checkpoints").exists()


def test_updates_with_an_infinite_loss_are_skipped_reported_by_line_and_then_stop_the_run(
    headwise: Command, corpus: Path, tmp_path: Path
) -> None:
    wild = ["optimizer=sgd", "schedule=constant", "learning_rate=1e30", "warmup=0", "max_bad_updates=3", "log_every=1"]
    code, _, err = headwise(*train(corpus, tmp_path / "run", *(f"training.{setting}" for setting in wild)))
    assert code == 1
    warnings = [line for line in err.splitlines() if "skipped: NaN or infinite loss" in line]
    assert len(warnings) == 4
    assert all(f"{corpus / 'train.en'}, lines " in line for line in warnings)
    last = err.splitlines()[-1]
    assert last.startswith("headwise: error: 4 updates had a NaN or infinite loss or gradient")
    assert "lower the learning rate" in last
    records = [json.loads(line, parse_constant=pytest.fail) for line in (tmp_path / "run/log.jsonl").open()]
    skipped = [record for record in records if record["event"] == "skipped"]
    assert len(skipped) == 4
    sources = (corpus / "train.en").read_text(encoding="utf-8").splitlines()
    assert all(1 <= number <= len(sources) for record in skipped for number in record["lines"])


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """The kernel refuses to make a file larger than this, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_the_last_good_checkpoint_stays_and_the_run_ends_cleanly(
    headwise: Command, corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert headwise(*train(corpus, run, "training.steps=4"))[0] == 0
    with files_at_most(80_000):  # enough for all but the state of the optimizer
        code, _, err = headwise(*train(corpus, run, "training.steps=12"))
    assert code == 1
    (told,) = [
        line for line in err.splitlines() if line.startswith("warning: could not write") and "step-00000006:" in line
    ]
    assert "training continues and tries to save again at update 7" in told
    assert "update 12 loss" in err
    assert err.splitlines()[-1].startswith("headwise: error: could not write")
    assert "free some space" in err.splitlines()[-1]
    assert no_leftovers(run)
    good = newest_good(run / "checkpoints", pytest.fail)  # type: ignore[arg-type]
    assert good is not None
    assert good.state["step"] == 4
    assert open_bundle(run / "model")
    code, _, err = headwise(*train(corpus, run, "training.steps=12"))
    assert code == 0
    assert "resuming from update 4 " in err


def test_a_disk_that_has_room_again_is_used_and_the_log_misses_nothing(
    headwise: Command, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = {"left": True}
    save, write = Save.save, Log._write

    def limited_save(self: Save, trainer: object) -> None:
        room["left"] = getattr(trainer, "step") > 8  # noqa: B009
        with files_at_most(80_000 if not room["left"] else resource.RLIM_INFINITY):
            save(self, trainer)  # type: ignore[arg-type]

    def limited_write(self: Log) -> None:
        with files_at_most(400 if not room["left"] else resource.RLIM_INFINITY):
            write(self)

    monkeypatch.setattr(Save, "save", limited_save)
    monkeypatch.setattr(Log, "_write", limited_write)
    code, _, err = headwise(*train(corpus, tmp_path / "run"))
    assert code == 0
    assert "tries to save again at update 5" in err
    assert [step for step, _ in list_checkpoints(tmp_path / "run/checkpoints")][-1] == 12
    records = [json.loads(line) for line in (tmp_path / "run/log.jsonl").open()]
    assert [r["step"] for r in records if r["event"] == "train"] == [2, 4, 6, 8, 10, 12]
    # The model of update 6 could not be kept, whatever its score was: what is told as the best is what is there.
    card = open_bundle(tmp_path / "run/model").card
    assert card["validation"]["step"] == 12
    assert records[-1]["best"] == card["validation"]
