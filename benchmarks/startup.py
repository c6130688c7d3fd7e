"""Measures how long a user waits for the first output, and how much memory that takes.

    python benchmarks/startup.py [--model RUN/model] [--source test.en] [--rounds 5] [--json FILE]

Every command runs in a process of its own, and commands take turns. The peers' commands are their closest equivalents:
the help of their translator, the import of their library.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from environments import DEFAULT, NotInstalledError, environment
from results import Result

from headwise.text.corpus import read_lines

HERE = Path(__file__).parent
# What is compared: our command, and for each peer (title, what its Python runs).
HELP = {
    "huggingface": ("Hugging Face, import of MarianMT", "from transformers import MarianMTModel"),
    "opennmt": ("OpenNMT-py 3.5.1, its translator's options", "OPENNMT"),
    "joeynmt": ("JoeyNMT 2.3.0, import", "import joeynmt.prediction"),
}
# Transforms of training data, which are not installed: as benchmarks/peers/opennmt_translation.py has it.
OPENNMT = (
    "import sys, types\n"
    "for unused in ('spacy', 'fasttext'): sys.modules[unused] = types.ModuleType(unused)\n"
    "from onmt.bin.translate import _get_parser\n_get_parser()"
)
TORCH = "PyTorch, import alone"

Command = list[str]
Figures = dict[str, list[float]]


def measure(command: Command) -> tuple[float, float]:
    """Runs a process; returns its seconds and its peak memory in MB."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError((errors.decode(errors="replace").strip().splitlines() or ["failed"])[-1])
    return taken, usage.ru_maxrss / 1024


def in_turns(commands: dict[str, Command], rounds: int) -> tuple[Figures, Figures, dict[str, str]]:
    """Returns seconds and memory per round, and the failed commands; a first round only warms the disk cache."""
    seconds: Figures = {name: [] for name in commands}
    memory: Figures = {name: [] for name in commands}
    failed: dict[str, str] = {}
    for number in range(rounds + 1):
        for name, command in commands.items():
            if name in failed:
                continue
            try:
                taken, peak = measure(command)
            except RuntimeError as error:
                failed[name] = f"failed ({error})"
                continue
            if number:
                seconds[name].append(taken)
                memory[name].append(peak)
    kept = [name for name in commands if name not in failed]
    return {name: seconds[name] for name in kept}, {name: memory[name] for name in kept}, failed


def peers(folder: Path, result: Result) -> dict[str, Command]:
    commands: dict[str, Command] = {TORCH: [sys.executable, "-c", "import torch"]}
    for peer, (title, code) in HELP.items():
        try:
            python = str(environment(folder, peer))
        except NotInstalledError as error:
            result.leave_out(title, f"could not be installed ({error})")
            continue
        commands[title] = [python, "-c", OPENNMT if code == "OPENNMT" else code]
    return commands


def compare(result: Result, what: str, ours: Command, others: dict[str, Command], rounds: int) -> None:
    seconds, memory, failed = in_turns({"headwise": ours, **others}, rounds)
    for name, reason in failed.items():
        result.leave_out(name, reason)
    if "headwise" not in seconds:
        return
    for unit, figures in (("s", seconds), ("MB", memory)):
        theirs = {name: figures[name] for name in others if name in figures}
        result.add(what, unit, figures["headwise"], theirs, better="lower", headline=unit == "s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="also: from the command to a translation, against a Hugging Face script")
    parser.add_argument("--source", type=Path, help="a text for that, of which the first line is taken")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    result = Result("startup", "Start-up", {"rounds": arguments.rounds})
    headwise = str(Path(sys.executable).parent / "headwise")
    others = peers(arguments.environments, result)
    compare(result, "headwise --help", [headwise, "--help"], others, arguments.rounds)
    if arguments.model and arguments.source:
        line = next(iter(read_lines(arguments.source))).text
        theirs: dict[str, Command] = {}
        if HELP["huggingface"][0] in others:
            python = str(environment(arguments.environments, "huggingface"))
            script = str(HERE / "peers" / "huggingface_translation.py")
            theirs["Hugging Face generate"] = [python, script, "--cold", arguments.model, line]
        ours = [headwise, "translate", "--model", arguments.model, line]
        compare(result, "from the command to a translation", ours, theirs, arguments.rounds)
    for row in result.rows:
        others_text = ", ".join(f"{name} {value:.2f}" for name, value in row.peers.items())
        print(f"{row.what}, {row.unit}: headwise {row.ours:.2f}; {others_text}")
    for peer, reason in result.left_out.items():
        print(f"{peer}: left out: {reason}")
    if arguments.json:
        result.save(arguments.json)


if __name__ == "__main__":
    main()
