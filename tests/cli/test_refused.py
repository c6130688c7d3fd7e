"""What no machine can do is one line and exit code 2, from the command itself: sizes, seeds, depths, names, lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import Command
from small_recipe import write_small_recipe

LONG = "n" * 300  # the system allows 255 bytes
IMPOSSIBLE = [
    "training.threads=1000000", "tokenizer.size=1000000000000", f"training.seed={2**64}", f"training.seed={-(2**64)}",
    f"training.seed={'9' * 9000}", "model.model_dim=1000000000", "model.encoder_layers=1000000000",
    "model.ff_dim=1000000000000", "training.batch_tokens=0", "training.steps=5\ntraining.seed=3",
    f"{'a.' * 20_000}b=1", f"training.best={'[' * 100_000}", f"data.source={LONG}", f"tokenizer.files={LONG}",
    "training.learning_rate=nan", f"model.from={LONG}",
]  # fmt: skip


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "corpus").mkdir()
    return write_small_recipe(tmp_path / "corpus", training={"steps": 2, "save_every": 1})


def one_line(code: object, err: str, *codes: int) -> str:
    """The last line of an error; nothing that a machine says to itself stands before it."""
    assert code in codes, err[-2000:]
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith("headwise: error: ")
    assert len(last) < 700
    return last


@pytest.mark.parametrize("override", IMPOSSIBLE, ids=lambda override: override[:30])
def test_a_setting_that_cannot_be_meant_is_refused_before_any_work(
    headwise: Command, recipe: Path, tmp_path: Path, override: str
) -> None:
    code, _, err = headwise("train", recipe, "--output", tmp_path / "run", "--set", override)
    one_line(code, err, 2)
    assert not (tmp_path / "run/checkpoints").exists()


def test_a_model_for_which_there_is_no_memory_is_refused_with_what_would_fit(
    headwise: Command, recipe: Path, tmp_path: Path
) -> None:
    code, _, err = headwise("train", recipe, "--output", tmp_path / "run", "--set", "model.model_dim=1000000000")
    assert "parameters fit, such as model.preset = " in one_line(code, err, 2)


@pytest.mark.parametrize("text", [".".join(["a"] * 20_000) + " = 1", "a = " + "[" * 100_000], ids=["dotted", "deep"])
def test_a_recipe_that_is_nested_without_end_is_refused(headwise: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.toml").write_text(text)
    code, _, err = headwise("train", tmp_path / "deep.toml", "--output", tmp_path / "run")
    assert "deep.toml" in one_line(code, err, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", LONG), ("train", "{recipe}", "--output", LONG), ("translate", "--model", LONG, "one"),
        ("translate", "--input", LONG), ("translate", "--output", LONG, "one"),
        ("translate", "--glossary", LONG, "one"),
        ("check", "--source", LONG, "--target", LONG), ("check", "--text", LONG), ("generate", "--model", LONG),
        ("evaluate", "--source", LONG, "--reference", LONG), ("score", "--source", LONG, "--target", LONG),
        ("look", "--output", f"{LONG}.html", "one"), ("look", "--model", LONG, "--output", "a.html", "one"),
        ("export", "--to", "ctranslate2", LONG), ("export", "--model", LONG, "--to", "ctranslate2", "out"),
        ("average", LONG, "out"), ("info", LONG), ("plot", LONG), ("import", LONG, "out"), ("init", f"{LONG}.toml"),
        ("serve", "--model", LONG), ("serve", "--runs", LONG), ("serve", "--api-key-file", LONG),
        ("classify", "--model", LONG, "one"), ("fill", "--model", LONG, "one"), ("embed", "--model", LONG, "one"),
        ("transcribe", "--model", LONG, "one.wav"), ("check", "--table", LONG), ("check", "--images", LONG),
    ],
    ids=lambda arguments: " ".join(arguments).replace(LONG, "LONG"),
)  # fmt: skip
def test_a_name_longer_than_the_system_allows_is_one_line_from_every_command(
    headwise: Command, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    code, _, err = headwise(*(word.format(recipe=recipe) for word in arguments))
    one_line(code, err, 1, 2)
    assert set(tmp_path.iterdir()) == before


def test_a_learning_rate_of_a_trillion_ends_in_one_line(headwise: Command, recipe: Path, tmp_path: Path) -> None:
    wild = ("training.learning_rate=1e12", "training.steps=20", "training.validate_every=4", "training.warmup=1")
    settings = [word for setting in wild for word in ("--set", setting)]
    code, _, err = headwise("train", recipe, "--output", tmp_path / "run", *settings)
    assert "learning" in one_line(code, err, 1)


KILLED = """
import os, signal, sys
from headwise.cli import main
from headwise.tasks import text_data

def killed(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

text_data.make_tokenizers = killed  # it reads the text when it is killed
sys.argv = ["headwise", *sys.argv[1:]]
main.run()
"""


def test_a_run_that_was_killed_before_its_first_checkpoint_is_started_by_resume(
    headwise: Command, recipe: Path, tmp_path: Path
) -> None:
    arguments = ["train", str(recipe), "--output", str(tmp_path / "run")]
    first = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, env=dict(os.environ))
    assert first.returncode == -signal.SIGKILL
    assert not (tmp_path / "run/checkpoints").exists()
    code, _, err = headwise(*arguments, "--resume")
    assert code == 0, err
    assert (tmp_path / "run/model/config.json").is_file()
