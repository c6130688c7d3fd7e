"""Trains one recipe to its end although it is killed again and again. Run by test_resume.py in a process of its own.

Arguments: recipe, output, number of kills. Prints how many kills were survived and how many of them hit a save.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from headwise.config.recipe import load_recipe
from headwise.workflows.train import train


def saving(run: Path) -> bool:
    """A save is under way: its unfinished directory is there."""
    folders = [run, run / "checkpoints"]
    return any(
        entry.name.startswith(".") and ".new-" in entry.name for f in folders if f.is_dir() for entry in f.iterdir()
    )


def start(recipe: str, output: Path) -> int:
    child = os.fork()
    if child:
        return child
    try:
        loaded, base = load_recipe(recipe)
        train(loaded, base, output)
    except BaseException as error:
        print(f"child: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def wait_and_kill(child: int, output: Path, draw: random.Random) -> tuple[bool, bool]:
    """(killed, inside a save): kills at the next save, or after a few log lines, whichever was drawn."""
    at_save = draw.random() < 0.6
    log = output / "log.jsonl"
    target = (log.stat().st_size if log.exists() else 0) + draw.randint(1, 1500)
    skip = draw.randint(0, 3)  # not always the first save
    was_saving = False
    while True:
        done, _ = os.waitpid(child, os.WNOHANG)
        if done:
            return False, False
        now = saving(output)
        skip -= was_saving and not now
        was_saving = now
        if (now and skip <= 0) if at_save else log.exists() and log.stat().st_size >= target:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return True, saving(output)
        time.sleep(0)


def main() -> None:
    recipe, output, kills = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    draw = random.Random(7)
    survived = inside = 0
    while survived < kills:
        killed, in_save = wait_and_kill(start(recipe, output), output, draw)
        if not killed:
            break
        survived, inside = survived + 1, inside + in_save
    child = start(recipe, output) if not (output / "finished.json").exists() else 0
    status = os.waitpid(child, 0)[1] if child else 0
    print(f"survived {survived} inside {inside} status {status}")


if __name__ == "__main__":
    main()
