"""Runs the command `headwise` as several ranks, job after job, in processes forked from one that has imported all.

Run by tests with a list of jobs as JSON on standard input; for each it prints a line of JSON: the exit code of every
rank and what it wrote to standard error. A job: {"world": 2, "arguments": ["train", …], "record": PATH or null,
"fault": {"rank": 1, "step": 5, "kind": "raise" | "signal" | "infinite" | "die"} or null}. A step of a translation is a
part. Where one rank fails the others are told to end, as torchrun does, unless the job says "alone": true.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from headwise.cli import main
from headwise.training import parallel, step
from headwise.workflows import distributed_translate, train  # noqa: F401


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def watch_updates(record: str | None, fault: dict[str, Any] | None) -> None:
    """Notes the lines of the corpus that every update of this rank sees, and goes wrong where it is asked to."""
    rank, update, forward = os.environ.get("RANK", "0"), step.Updater.__call__, parallel.Objective.forward
    mine = fault if fault is not None and str(fault["rank"]) == rank else None
    now = [0]

    def watched(self: Any, batch: Any, rate: float, number: int = 0) -> Any:
        now[0] = number
        if record is not None:
            with open(f"{record}.{rank}", "a", encoding="utf-8") as stream:
                stream.write(json.dumps([number, batch.lines.tolist()]) + "\n")
        if mine is not None and mine["step"] == number:
            if mine["kind"] == "raise":
                raise ValueError("a fault that was asked for")
            if mine["kind"] == "signal":
                signal.raise_signal(signal.SIGTERM)
        return update(self, batch, rate, number)

    def loss(*arguments: Any) -> Any:
        total, *rest = forward(*arguments)
        infinite = mine is not None and mine["kind"] == "infinite" and mine["step"] == now[0]
        return (total * float("inf") if infinite else total, *rest)

    def written(self: Any, number: int, lines: list[str], cut_off: list[int]) -> None:
        if mine is not None and mine["kind"] == "die" and mine["step"] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, number, lines, cut_off)

    write = distributed_translate.Parts.write
    distributed_translate.Parts.write = written  # type: ignore[method-assign]
    step.Updater.__call__ = watched  # type: ignore[method-assign]
    parallel.Objective.forward = loss  # type: ignore[method-assign]


def run_rank(job: dict[str, Any], rank: int, port: int, errors: Path) -> None:
    handle = os.open(errors, os.O_WRONLY | os.O_CREAT)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    if job["world"] > 1:
        os.environ |= {
            "RANK": str(rank), "WORLD_SIZE": str(job["world"]), "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(job["world"]), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        }  # fmt: skip
    watch_updates(job.get("record"), job.get("fault"))
    sys.argv = ["headwise", *job["arguments"]]
    try:
        main.run()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def run_job(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    port = free_port()
    files = [folder / f"errors.{rank}" for rank in range(job["world"])]
    children: dict[int, int] = {}  # process -> rank
    for rank, file in enumerate(files):
        file.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            run_rank(job, rank, port, file)
        children[child] = rank
    codes = [0] * len(files)
    while children:
        child, status = os.wait()
        code = codes[children.pop(child)] = os.waitstatus_to_exitcode(status)
        for other in children if code and not job.get("alone") else ():
            os.kill(other, signal.SIGTERM)
    return {"codes": codes, "errors": [file.read_text(encoding="utf-8") for file in files]}


def run_all() -> None:
    torch.set_num_threads(1)
    jobs = json.load(sys.stdin)
    if any("training.shard=true" in job["arguments"] for job in jobs):
        importlib.import_module("torch.distributed.fsdp")  # some seconds, once and not in every rank
    with tempfile.TemporaryDirectory() as folder:
        for job in jobs:
            print(json.dumps(run_job(job, Path(folder))), flush=True)


if __name__ == "__main__":
    run_all()
