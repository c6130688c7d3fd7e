"""The README's own commands run, in its order, on a small corpus; and the two READMEs say the same."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from fixtures_models import english_sentences, german, small_transformer, word_tokenizers
from typer import Typer
from typer.testing import CliRunner

from headwise.bundle.shipped import shipped_directories
from headwise.bundle.weights import save_model
from headwise.cli.main import VERBS, function_of

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.zh-CN.md")
# Training is cut short, the model small and its output short; all else is as it is written.
SMALL = {
    "my-translator.toml": (
        "training.steps=3 tokenizer.size=310 model.model_dim=16 model.ff_dim=16 model.encoder_layers=1 "
        "model.decoder_layers=1 decoding.max_extra=3"
    ),
    "--text": (
        "training.steps=3 training.batch_tokens=512 tokenizer.size=290 model.model_dim=16 model.ff_dim=16 "
        "model.layers=1"
    ),
    "--table": (
        "training.steps=3 training.batch_tokens=512 tokenizer.size=290 model.model_dim=16 model.num_heads=2 "
        "model.ff_dim=16 model.layers=1"
    ),
}


def blocks(readme: str, kind: str) -> list[str]:
    """The contents of the fenced blocks of a kind."""
    text = (ROOT / readme).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(readme: str) -> list[list[str]]:
    lines = [line for block in blocks(readme, "sh") for line in block.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def recipes(readme: str) -> dict[str, str]:
    """Name and text of each recipe; its first line is a comment that names it."""
    return {re.findall(r"# ([\w.-]+)", block)[0]: block for block in blocks(readme, "toml")}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the texts and recipes that the README speaks of."""
    for number, (name, count) in enumerate({"train": 400, "val": 20, "test": 20}.items()):
        english = english_sentences(count, seed=number)
        (tmp_path / f"{name}.en").write_text("\n".join(english) + "\n", encoding="utf-8")
        (tmp_path / f"{name}.de").write_text("\n".join(map(german, english)) + "\n", encoding="utf-8")
    shutil.copy(tmp_path / "train.en", tmp_path / "book.txt")
    shutil.copy(tmp_path / "test.en", tmp_path / "test.txt")
    rows = [f'"{line}",{"long" if len(line.split()) > 4 else "short"}' for line in english_sentences(300, seed=9)]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    for name, text in recipes("README.md").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def headwise(*arguments: str) -> str:
    app = Typer(pretty_exceptions_enable=False)
    for verb in VERBS:
        app.command(verb)(function_of(verb))
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, f"headwise {shlex.join(arguments)}: {result.output}"
    return result.stdout


def serve(place: Path, arguments: list[str]) -> dict[str, Any]:
    """What a server started so says when it is asked whether it is ready; then it is asked to end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headwise", *arguments, "--port", "0"], cwd=place, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        address = next(found[0] for line in process.stderr if (found := re.findall(r"http://[\w.:]+", line)))
        with urlopen(f"{address}/health/ready") as response:
            answer: dict[str, Any] = json.load(response)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
    return answer


def small(arguments: list[str]) -> list[str]:
    """Options that make the training of a command short."""
    (settings,) = [SMALL[word] for word in arguments if word in SMALL]
    return [word for setting in settings.split() for word in ("--set", setting)]


def run_on_ranks(place: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", *arguments, *small(arguments)]
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert (place / arguments[arguments.index("--output") + 1] / "model" / "model.safetensors").is_file()


def test_every_command_of_the_readme_works_in_its_order(place: Path) -> None:
    ran = set()
    for program, *arguments in commands("README.md"):
        if program == "torchrun":
            run_on_ranks(place, arguments)
        if program != "headwise":
            continue
        if arguments[0] == "serve":
            answer = serve(place, arguments)
            assert answer["status"] == "ready"
            assert len(answer["models"]) == (arguments.count("--model") or len(shipped_directories()))
            continue
        if arguments[0] == "train":
            arguments += small(arguments)
        printed = headwise(*arguments)
        ran.add(arguments[0])
        if arguments[0] == "train" and not (place / "headwise-demo").exists():
            shutil.copytree(place / "runs" / "my-translator", place / "headwise-demo" / "run")
        if "--output" in arguments and arguments[0] != "train":
            assert (place / arguments[arguments.index("--output") + 1]).stat().st_size > 0
        if arguments[0] in ("check", "translate", "evaluate", "score", "info") and "--output" not in arguments:
            # A model of three updates may answer with an empty line.
            assert printed if (arguments[0], "--model" in arguments) == ("translate", True) else printed.strip()
    assert {"check", "train", "translate", "generate", "evaluate", "look", "export"} <= ran


def test_the_python_of_the_readme_runs(place: Path) -> None:
    tokenizers = word_tokenizers()
    model = small_transformer(tokenizers.source.size)
    save_model(
        place / "headwise-demo" / "run" / "model", model, tokenizers, family="transformer", decoding={"max_extra": 3}
    )
    (snippet,) = blocks("README.md", "python")
    (place / "snippet.py").write_text(snippet, encoding="utf-8")
    done = subprocess.run([sys.executable, "snippet.py"], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


def test_the_recipes_of_the_readme_need_no_change(place: Path) -> None:
    for name in recipes("README.md"):
        printed = tomllib.loads(headwise("train", name, "--print-recipe"))
        assert printed["model"]["model_dim"] > 0
        assert printed["data"]["languages"]


@pytest.mark.parametrize("readme", READMES)
def test_every_make_target_and_file_that_the_readme_names_exists(readme: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    others = [words for words in commands(readme) if words[0] != "headwise"]
    assert [words for words in others if words[0] == "make"][:2] == [["make", "demo"], ["make", "test"]]
    for program, *arguments in others:
        if program == "make":
            assert set(arguments) <= targets
        else:
            if program == "torchrun":
                continue
            assert [program, *arguments] == ["pip", "install", "-c", "constraints.txt", "."]
            assert (ROOT / "constraints.txt").is_file()
            assert (ROOT / "pyproject.toml").is_file()


@pytest.mark.parametrize("readme", READMES)
def test_the_readme_speaks_of_no_command_that_does_not_exist(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    assert set(re.findall(r"`headwise ([a-z]+)", text)) <= set(VERBS)
    assert {words[1] for words in commands(readme) if words[0] == "headwise"} <= {*VERBS, "--help"}


@pytest.mark.parametrize("readme", READMES)
def test_the_listing_of_the_readme_is_the_source_folder(readme: str) -> None:
    (listing,) = blocks(readme, "text")
    names = [re.findall(r"^[\w./]+(?:, [\w./]+)*", line)[0].split(", ") for line in listing.splitlines()]
    listed = {name.rstrip("/") for several in names for name in several}
    source = ROOT / "src" / "headwise"
    folders = {path.parent.name for path in source.glob("*/__init__.py")}
    files = {path.name for path in source.glob("*.py") if not path.name.startswith("__")}
    assert listed == folders | files


def test_both_readmes_have_the_same_commands_recipes_and_python() -> None:
    english, chinese = READMES
    assert commands(english) == commands(chinese)
    parsed = [{name: tomllib.loads(text) for name, text in recipes(readme).items()} for readme in READMES]
    assert parsed[0] == parsed[1]
    trees = [[ast.dump(ast.parse(block)) for block in blocks(readme, "python")] for readme in READMES]
    assert trees[0] == trees[1]


def test_both_readmes_have_the_same_sections_and_links() -> None:
    texts = [(ROOT / readme).read_text(encoding="utf-8") for readme in READMES]
    headings = [len(re.findall(r"^## ", text, re.MULTILINE)) for text in texts]
    assert headings[0] == headings[1]
    # Each README leads to the tour in its own language.
    links = [re.findall(r"\]\(([^)]+)\)", text.replace("docs/tour/zh/", "docs/tour/")) for text in texts]
    assert sorted(set(links[0]) - set(READMES)) == sorted(set(links[1]) - set(READMES))
