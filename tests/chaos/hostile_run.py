"""Gives tampered model directories to every command. Run by test_hostile_models.py in a process of its own.

Arguments: model directory, language model directory, number of alterations per model, seed, folder to work in.
Prints one JSON object per command that did not end well, and the number of commands at last.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import ctranslate2  # noqa: F401  (imported once, before the children are forked)
import torch
from child import run
from hostile import some

import headwise.cli.main
import headwise.decoding.ctranslate2_engine
import headwise.interop.ctranslate2.kept
import headwise.tasks.generator
import headwise.tasks.translation_scores
import headwise.workflows.average
import headwise.workflows.serve  # noqa: F401
from headwise.config.families import family_names
from headwise.models.registry import network_class

TRANSLATE = (
    ("translate", "--engine", "ctranslate2", "one two"),
    ("translate", "--engine", "torch", "one two"),
    ("translate", "one two"),
    ("info",),
    ("look", "one two", "--output", "{out}.html"),
    ("score", "--source", "{text}", "--target", "{text}"),
    ("evaluate", "--source", "{text}", "--reference", "{text}"),
    ("export", "--to", "ctranslate2", "{out}"),
    ("average", "{out}"),
)
GENERATE = (
    ("generate", "one", "--max-tokens", "5"),
    ("info",),
    ("look", "one", "--output", "{out}.html"),
    ("score", "--text", "{text}"),
    ("evaluate", "--text", "{text}"),
    ("export", "--to", "ctranslate2", "{out}"),
    ("average", "{out}"),
)


def arguments(command: tuple[str, ...], model: Path, folder: Path) -> list[str]:
    texts = {"text": str(folder / "text"), "out": str(folder / "out")}
    verb, *rest = (word.format(**texts) for word in command)
    return [verb, str(model), *rest] if verb in ("info", "average") else [verb, "--model", str(model), *rest]


def main() -> None:
    translator, writer, count, seed, folder = *map(Path, sys.argv[1:3]), *map(int, sys.argv[3:5]), Path(sys.argv[5])
    torch.set_num_threads(1)
    for name in family_names():
        network_class(name)  # imports it
    (folder / "text").write_text("one two\nthree\n")
    total = 0
    for original, commands in ((translator, TRANSLATE), (writer, GENERATE)):
        for number, (what, change) in enumerate(some(original, count, seed)):
            model = folder / "model"
            shutil.rmtree(model, ignore_errors=True)
            shutil.copytree(original, model)
            change(model)
            # Every command in turn; each alteration meets a few of them, and over all alterations every pair occurs.
            for place in range(3):
                command = commands[(number + place * 2) % len(commands)]
                for left in folder.glob("out*"):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                ended, total = run(arguments(command, model, folder)), total + 1
                if not ended.fine:
                    told = {"what": what, "command": command, "code": ended.code, "memory": ended.memory}
                    print(json.dumps({**told, "errors": ended.errors[-1500:]}), flush=True)
    print(total)


if __name__ == "__main__":
    main()
