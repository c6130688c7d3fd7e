"""Compares one process with a thread per core to one process per core: target tokens per second, without padding.

    python benchmarks/scaling.py [--presets tiny base] [--cores 2] [--rounds 5] [--steps N] [--json FILE]

Both train the same model on the same batches of 4,096 tokens, with bit-identical results: `headwise train` splits each
batch into shares for its threads, `torchrun -m headwise train` into shares for its ranks, whose gradients are summed
through gloo. They take turns, round by round, each in new processes. A round is `--steps` updates after two warm-up
updates, timed from when all ranks are ready until all are done. The corpus is Multi30k if it is in the folder
HEADWISE_DATA, otherwise the generated corpus of the demo.

`headwise train` would offer `--processes` if that were faster; docs/scaling.md has the outcome.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from headwise.config.families.transformer import FAMILY
from headwise.config.schema import Recipe, Training
from headwise.data.cursor import Cursor, walk
from headwise.data.pairs import PairBatches
from headwise.data.prefetch import Prefetch
from headwise.data.store import Store
from headwise.losses import batch_loss
from headwise.models.registry import build_model
from headwise.text.phrasebook import write_corpus
from headwise.training.device import one_core_each
from headwise.training.distributed import joined
from headwise.training.optimizers import build_optimizer
from headwise.training.parallel import RankUpdater, replicate
from headwise.training.step import Updater
from headwise.workflows.prepare import prepare

BATCH_TOKENS, VOCABULARY, SMOOTHING, SEED, WARMUP, RATE = 4096, 8000, 0.1, 1, 2, 1e-4
STEPS = {"tiny": 12, "base": 4}

Figures = dict[str, Any]


# ---- a contestant, in separate processes


def work(request: Figures) -> Figures | None:
    """Trains for one round; returns the figures of rank 0."""
    torch.manual_seed(SEED)
    model = build_model("transformer", request["architecture"]).train()
    with joined() as world, one_core_each():
        optimizer = build_optimizer(Training(learning_rate=RATE), model.parameters())
        if world.size > 1:
            objective = replicate(model, batch_loss)
            updater: Updater = RankUpdater(objective, world, model, optimizer, smoothing=SMOOTHING, seed=SEED)
        else:
            updater = Updater(model, optimizer, smoothing=SMOOTHING, seed=SEED, workers=request["threads"])
        batches = PairBatches(Store(Path(request["store"])), BATCH_TOKENS, SEED, rank=world.rank, world=world.size)
        began, tokens, loss = (0.0, 0.0), 0, 0.0
        with Prefetch(walk(batches, Cursor(*request["cursor"]))) as ready:
            for number, (batch, _) in enumerate(islice(ready, WARMUP + request["steps"])):
                if number == WARMUP:
                    world.sum([0.0])  # all are ready
                    began, tokens = (time.perf_counter(), time.process_time()), 0
                update = updater(batch, RATE, number + 1)
                tokens, loss = tokens + update.tokens, update.loss
            world.sum([0.0])  # all are done
        seconds, cpu = time.perf_counter() - began[0], world.sum([time.process_time() - began[1]])[0]
        return {"tokens": tokens, "seconds": seconds, "cpu": cpu, "loss": loss} if world.leads else None


def run(request: Figures, processes: int) -> Figures:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    for rank in range(processes):
        place = {"RANK": str(rank), "WORLD_SIZE": str(processes), "LOCAL_RANK": str(rank)}
        place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LOCAL_WORLD_SIZE": str(processes)}
        surroundings = {**os.environ, "OMP_NUM_THREADS": "1", **(place if processes > 1 else {})}
        command = [sys.executable, __file__, "--worker", json.dumps(request)]
        ranks.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings))
    said = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit(f"a contestant with {processes} processes failed")
    found: Figures = json.loads(said[0].strip().splitlines()[-1])
    return found


# ---- rounds and figures


def prepare_store(scratch: Path) -> tuple[Store, int]:
    corpora = os.environ.get("HEADWISE_DATA")
    folder = Path(corpora) / "multi30k" if corpora else scratch
    if corpora:
        data = {"source": str(folder / "train.en.gz"), "target": str(folder / "train.de.gz"), "languages": ["en", "de"]}
    else:
        write_corpus(scratch, train=40_000, held_out=10)
        data = {"source": str(folder / "train.en"), "target": str(folder / "train.zh"), "languages": ["en", "zh"]}
    recipe = Recipe.model_validate({"data": data, "tokenizer": {"size": VOCABULARY}})
    prepared = prepare(recipe, folder, scratch / "cache")
    return prepared.training, prepared.assets.tokenizers.target.size


def play(arguments: argparse.Namespace, preset: str, store: Store, vocabulary: int) -> dict[str, list[Figures]]:
    cores, steps = arguments.cores, arguments.steps or STEPS[preset]
    contestants = {f"1 process × {cores} threads": (1, cores), f"{cores} processes × 1 thread": (cores, 1)}
    found: dict[str, list[Figures]] = {name: [] for name in contestants}
    planned = PairBatches(store, BATCH_TOKENS, SEED)
    for number in range(arguments.rounds):
        first = number * (steps + WARMUP)
        cursor = (first // planned.count(0), first % planned.count(0))
        # The order alternates from round to round.
        for name, (processes, threads) in sorted(contestants.items(), reverse=bool(number % 2)):
            architecture = {"source_vocab": vocabulary, **FAMILY.presets[preset]}
            request = {
                "architecture": architecture, "store": str(store.directory), "steps": steps, "cursor": cursor,
                "threads": threads,
            }  # fmt: skip
            found[name].append(run(request, processes))
            last = found[name][-1]
            rate = last["tokens"] / last["seconds"]
            print(f"{preset} round {number + 1}  {name:<24}{rate:9,.0f} tokens/s", file=sys.stderr, flush=True)
        losses = {name: rounds[-1]["loss"] for name, rounds in found.items()}
        if len({round(loss, 4) for loss in losses.values()}) > 1:
            raise SystemExit(f"the contestants did not compute the same: {losses}")
    return found


def show(preset: str, found: dict[str, list[Figures]]) -> tuple[list[float], list[float]]:
    print(f"\n{preset:<26}{'tokens/s':>10}{'lowest-highest':>20}{'cores used':>12}{'tokens/CPU s':>14}")
    rates = {name: [f["tokens"] / f["seconds"] for f in rounds] for name, rounds in found.items()}
    for name, rounds in found.items():
        spread = f"{min(rates[name]):,.0f}-{max(rates[name]):,.0f}"
        used = sum(f["cpu"] for f in rounds) / sum(f["seconds"] for f in rounds)
        worth = sum(f["tokens"] for f in rounds) / sum(f["cpu"] for f in rounds)
        print(f"{name:<26}{statistics.median(rates[name]):>10,.0f}{spread:>20}{used:>12.2f}{worth:>14,.0f}")
    threads, processes = rates.values()
    each = [b / a for a, b in zip(threads, processes, strict=True)]
    print(f"processes / threads: {statistics.median(each):.2f} ({min(each):.2f}-{max(each):.2f})")
    return threads, processes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", choices=list(STEPS), default=list(STEPS))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, help=f"timed updates per round; unset: {STEPS}")
    parser.add_argument("--json", type=Path, help="write the figures into this file")
    parser.add_argument("--worker", metavar="REQUEST", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(work(json.loads(arguments.worker))))
        return
    from results import Result

    settings = {"batch_tokens": BATCH_TOKENS, "cores": arguments.cores}
    result = Result("scaling", "Threads and processes on one machine", settings=settings, threads=arguments.cores)
    with tempfile.TemporaryDirectory() as scratch:
        store, vocabulary = prepare_store(Path(scratch))
        for preset in arguments.presets:
            threads, processes = show(preset, play(arguments, preset, store, vocabulary))
            name = f"{arguments.cores} processes × 1 thread"
            what = f"training {preset}, 1 process × {arguments.cores} threads"
            result.add(what, "target tokens/s", ours=threads, peers={name: processes})
    if arguments.json:
        result.save(arguments.json)


if __name__ == "__main__":
    main()
