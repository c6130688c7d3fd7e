"""Trains small runs to their ends although they are killed again and again; test_kills.py runs it in its own process.

Arguments: recipe, folder to work in, number of kills, number of ranks, seed. Prints a JSON object: the kills, how many
of them hit a save, the runs, and what differed from a run that was left alone.

Everything is imported once; runs are forks of this process. A run is killed a few times at moments of three kinds: at
a step on the disk that is drawn (the run kills itself there), at a time that is drawn, or while a save is seen to be
under way. Of two ranks one or both are killed; what is left is told to end, as torchrun does.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from failing_disk import kill_at
from ranks_run import free_port

from headwise.config.recipe import load_recipe
from headwise.workflows.train import train

MOST_PER_RUN = 14  # kills; then a run is left alone until it ends
LONGEST = 120  # seconds of a run, on a busy machine
TICKS = {"save": 0.001, "time": 0.005, "step": 0.02}  # seconds between two looks at a run
LATER = (  # what a run imports on its way
    "torch._dynamo", "sacrebleu", "tensorboardX.event_file_writer", "tensorboardX.proto.event_pb2",
    "headwise.data.pairs", "headwise.decoding.torch_engine", "headwise.evaluation.metrics",
    "headwise.models.transformer", "headwise.tasks.validation_scores",
)  # fmt: skip


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def result(output: Path) -> dict[str, str]:
    """Hashes of the last checkpoint (weights, optimizer, averages, generators), the published weights and the log."""
    last = max((output / "checkpoints").glob("step-*"))
    files = {
        "training": last / "training.safetensors",
        "checkpoint": last / "model/model.safetensors",
        "published": output / "model/model.safetensors",
        "log": output / "log.jsonl",
    }
    return {"last": last.name, **{name: digest(path) for name, path in files.items()}}


def saving(run: Path) -> bool:
    """Tells whether a save is under way: its unfinished directory is there."""
    return any(
        entry.name.startswith(".") and (".new-" in entry.name or ".old-" in entry.name)
        for folder in (run, run / "checkpoints") if folder.is_dir() for entry in folder.iterdir()
    )  # fmt: skip


@dataclass
class Run:
    """One run of some ranks, as processes forked from this one."""

    recipe: Path
    output: Path
    world: int

    def start(self, kill_step: int = 0) -> list[int]:
        """Returns the processes, one per rank; rank 0 kills itself at a step on the disk if one is given."""
        port, children = free_port() if self.world > 1 else 0, []
        for rank in range(self.world):
            child = os.fork()
            if not child:
                self._work(rank, port, kill_step if rank == 0 else 0)
            children.append(child)
        return children

    def _work(self, rank: int, port: int, kill_step: int) -> None:
        try:
            if self.world > 1:
                os.environ |= {
                    "RANK": str(rank), "WORLD_SIZE": str(self.world), "LOCAL_RANK": str(rank),
                    "LOCAL_WORLD_SIZE": str(self.world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                }  # fmt: skip
            loaded, base = load_recipe(self.recipe)
            if kill_step:
                kill_at(kill_step)
            train(loaded, base, self.output)
        except BaseException as error:
            print(f"rank {rank}: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)

    def killed(self, draw: random.Random, duration: float) -> tuple[bool, bool]:
        """(killed, inside a save): starts the run and kills it at a moment that is drawn, if it lasts so long."""
        kind = draw.choice(("step", "save", "time"))
        step, skip = draw.randint(1, 60) if kind == "step" else 0, draw.randint(0, 2)
        begun, after, was_saving = time.monotonic(), draw.random() * duration, False
        children = self.start(step)
        while True:
            done, status = os.waitpid(children[0], os.WNOHANG)
            if done:
                killed = os.waitstatus_to_exitcode(status) == -signal.SIGKILL
                return killed, self._reap(children[1:], told=killed) and saving(self.output)
            now = kind == "save" and saving(self.output)
            skip -= was_saving and not now
            was_saving = now
            passed = time.monotonic() - begun
            if (now and skip < 0) or (kind == "time" and passed >= after) or passed > LONGEST:
                time.sleep(draw.random() * 0.004)  # somewhere inside of the save
                self._kill(children, draw)
                return True, saving(self.output)
            time.sleep(TICKS[kind])

    def _kill(self, children: list[int], draw: random.Random) -> None:
        victims = draw.choice((children, *([child] for child in children)))
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        for victim in victims:
            os.waitpid(victim, 0)
        self._reap([child for child in children if child not in victims], told=True)

    def _reap(self, children: list[int], told: bool) -> bool:
        """Waits for ranks whose peers are gone."""
        for child in children:
            if told:
                os.kill(child, signal.SIGTERM)
            until = time.monotonic() + LONGEST
            while not os.waitpid(child, os.WNOHANG)[0]:
                if time.monotonic() > until:
                    os.kill(child, signal.SIGKILL)
                    raise RuntimeError("a rank whose peer was killed hangs")
                time.sleep(TICKS["time"])
        return True

    def finish(self) -> list[int]:
        """Runs to the end; the exit codes."""
        return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in self.start()]


def main() -> None:
    recipe, folder, kills, world, seed = Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:6])
    torch.set_num_threads(1)
    for name in LATER:
        importlib.import_module(name)
    draw, told = random.Random(seed), {"kills": 0, "inside": 0, "runs": 0}
    alone = Run(recipe, folder / "alone", world)
    begun = time.monotonic()
    codes = alone.finish()
    assert codes == [0] * world, codes
    duration, expected, different = time.monotonic() - begun, result(alone.output), []
    while told["kills"] < kills:
        run = Run(recipe, folder / "killed", world)
        shutil.rmtree(run.output, ignore_errors=True)
        for _ in range(draw.randint(1, MOST_PER_RUN)):
            if (run.output / "finished.json").exists():
                break
            killed, inside = run.killed(draw, duration)
            told["kills"] += killed
            told["inside"] += killed and inside
        codes = [0] * world if (run.output / "finished.json").exists() else run.finish()
        told["runs"] += 1
        found = result(run.output)
        if found != expected or codes != [0] * world:
            different.append({"run": told["runs"], "codes": codes, "found": found})
        if told["runs"] % 10 == 0:
            print({**told, "different": len(different)}, file=sys.stderr, flush=True)
    print(json.dumps({**told, "different": different}))


if __name__ == "__main__":
    main()
