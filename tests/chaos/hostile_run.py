"""Gives tampered model directories to every command. Run by test_hostile_models.py in a process of its own.

Argument: JSON with `models` (a model directory by task), `counts` (alterations by task), `commands` (how many commands
each alteration meets; 0: all), `seed` and `folder` (to work in). Prints a JSON object per command that did not end
well, and the numbers of directories, commands and refusals at last.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from child import run
from hostile import some

import headwise.cli.main  # noqa: F401
from headwise.config.families import family_names
from headwise.models.registry import network_class

ALL = (
    ("info",),
    ("export", "--to", "ctranslate2", "{out}"),
    ("average", "{out}"),
    ("serve", "--port", "0"),
)
COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "translate": (
        ("translate", "--engine", "ctranslate2", "one two"),
        ("translate", "--engine", "torch", "one two"),
        ("translate", "one two"),
        ("look", "one two", "--output", "{out}.html"),
        ("score", "--source", "{text}", "--target", "{text}"),
        ("evaluate", "--source", "{text}", "--reference", "{text}"),
    ),
    "generate": (
        ("generate", "one", "--max-tokens", "5"),
        ("look", "one", "--output", "{out}.html"),
        ("score", "--text", "{text}"),
        ("evaluate", "--text", "{text}"),
    ),
    "classify": (
        ("classify", "one two"),
        ("classify", "--engine", "torch", "one two"),
        ("look", "one two", "--output", "{out}.html"),
        ("evaluate", "--table", "{table}"),
    ),
    "fill": (("fill", "one [MASK] two"), ("evaluate", "--text", "{text}")),
    "embed": (
        ("embed", "one two", "--output", "{out}.npy"),
        ("embed", "--engine", "torch", "one two", "--output", "{out}.npy"),
    ),
    "transcribe": (("transcribe", "{sound}"), ("evaluate", "--sounds", "{sounds}")),
}
LATER = (  # imported once, before children are forked
    "ctranslate2", "torch._dynamo", "sacrebleu", "matplotlib.figure", "soundfile", "headwise.tasks.generator",
    "headwise.decoding.ctranslate2_engine", "headwise.decoding.ctranslate2_encoder", "headwise.look.page",
    "headwise.interop.ctranslate2.kept", "headwise.interop.ctranslate2.export", "headwise.tasks.translation_scores",
    "headwise.serving.app", "headwise.serving.server", "headwise.workflows.average", "headwise.workflows.serve",
    "headwise.decoding.torch_engine", "headwise.decoding.transcriber", "headwise.look.capture",
)  # fmt: skip


def arguments(command: tuple[str, ...], model: Path, folder: Path) -> list[str]:
    places = {
        "text": "text",
        "out": "out",
        "table": "table.csv",
        "sound": "sounds/0.wav",
        "sounds": "sounds/metadata.csv",
    }
    texts = {name: str(folder / place) for name, place in places.items()}
    verb, *rest = (word.format(**texts) for word in command)
    return [verb, str(model), *rest] if verb in ("info", "average") else [verb, "--model", str(model), *rest]


def spoil(original: Path, folder: Path, change: Any) -> Path:
    """A copy of the model with the change."""
    model = folder / "model"
    shutil.rmtree(model, ignore_errors=True)
    shutil.copytree(original, model)
    change(model)
    return model


def main() -> None:
    asked = json.loads(sys.argv[1])
    folder, total = Path(asked["folder"]), {"directories": 0, "commands": 0, "refused": 0}
    torch.set_num_threads(1)
    for name in LATER:
        importlib.import_module(name)
    for name in family_names():
        network_class(name)  # imports it
    (folder / "text").write_text("one two\nthree\n")
    (folder / "table.csv").write_text("text,label\none two,numbers\n")
    for task, original in asked["models"].items():
        commands = (*COMMANDS[task], *ALL)
        for number, (what, change) in enumerate(some(Path(original), asked["counts"][task], asked["seed"])):
            model = spoil(Path(original), folder, change)
            total["directories"] += 1
            # With a few commands per alteration every pair of kinds occurs over all of them.
            for place in range(asked["commands"] or len(commands)):
                command = commands[(number + place * 2) % len(commands) if asked["commands"] else place]
                for left in folder.glob("out*"):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                ended = run(arguments(command, model, folder))
                total["commands"] += 1
                total["refused"] += ended.code != 0
                if not ended.fine:
                    told = {"what": what, "command": command, "code": ended.code, "memory": ended.memory}
                    print(json.dumps({**told, "errors": ended.errors[-1500:]}), flush=True)
    print(json.dumps(total))


if __name__ == "__main__":
    main()
