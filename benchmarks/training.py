"""Compares training speed and memory with peers in one run: target tokens per second, and peak memory.

    python benchmarks/training.py --preset tiny|base|rnn [--rounds 5] [--steps 12] [--only headwise torch] [--json FILE]

Multi30k en-de from --corpora (or HEADWISE_DATA), one BPE vocabulary of 8,000 made by Headwise, the same token ids for
all; 4,096 tokens per batch, label smoothing 0.1, Adam (fused for all), fp32, 2 threads, denormals flushed, no clipping.

Contestants take turns, round by round, each in its own process, so that other load on the machine affects all equally.
A round is `--steps` updates after two warm-up updates; round n has the same batches for all. The figure is the median
of the rounds, with the lowest and highest. MFU is the share of the matmul peak, measured in the same rounds: 6 ·
(encoder parameters · source tokens + (decoder parameters + V · D) · target tokens) / seconds / peak, without padding.

`torch` makes its own batches, sorted by target length, then source length; all other peers get Headwise's batches,
ready in memory, which favours them. Of OpenNMT-py and JoeyNMT only the model and loss are used, not their own training
loops. A peer's environment is created under --environments on first use; a peer that cannot be installed is reported
and left out. "cores" is the number of cores used: if it is well below --threads, the machine was busy.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from environments import DEFAULT, NotInstalledError, environment
from results import Result

from headwise.config.schema import Recipe, require_family
from headwise.data.cursor import Cursor
from headwise.data.pairs import PairBatches
from headwise.data.store import Store
from headwise.models.registry import build_model
from headwise.workflows.prepare import prepare

BATCH_TOKENS, VOCABULARY, SMOOTHING, SEED, WARMUP = 4096, 8000, 0.1, 1, 2
STEPS = {"tiny": 12, "base": 4, "rnn": 12}
# The family, a preset of it, and what is set otherwise. JoeyNMT ties the output matrix only to embeddings that are as
# wide as its states.
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "tiny": ("transformer", "tiny", {}),
    "base": ("transformer", "base", {}),
    "rnn": ("rnn", "rnn-tiny", {"model_dim": 256, "hidden_dim": 256, "dropout": 0.1}),
}
HERE = Path(__file__).parent

Figures = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    script: str
    peer: str | None = None  # whose environment; None: that of this process
    batches: str = "headwise"
    options: dict[str, float] = field(default_factory=dict)
    dropouts: str = "all"  # all: attention, feed-forward, sub-layers, embeddings
    note: str = ""
    models: tuple[str, ...] = ("tiny", "base")


CONTESTANTS = {
    "headwise": Contestant("headwise", models=("tiny", "base", "rnn")),
    "torch": Contestant("torch", batches="own", note="torch.nn.Transformer, its own batches (by target length)"),
    "torch-same-batches": Contestant("torch", note="torch.nn.Transformer"),
    "huggingface": Contestant(
        "huggingface", "huggingface", dropouts="outer", note="MarianMT with SDPA, its default dropouts"
    ),
    "huggingface-dropouts": Contestant(
        "huggingface", "huggingface", options={"attention_dropout": 0.1, "activation_dropout": 0.1},
        note="MarianMT with SDPA",
    ),
    "opennmt": Contestant("opennmt", "opennmt", note="OpenNMT-py 3.5.1, pre-norm; model and loss only"),
    "joeynmt": Contestant(
        "joeynmt", "joeynmt", note="JoeyNMT 2.3.0; model and loss only", models=("tiny", "base", "rnn")
    ),
}  # fmt: skip


# ---- the training data


@dataclass(frozen=True)
class Work:
    """The corpus as a store and as plain arrays, the model's sizes, and the cursor of each batch."""

    store: Store
    ids: Path
    cursors: list[Cursor]
    vocabulary: int
    family: str
    sizes: dict[str, Any]

    def operations(self, result: Figures) -> float:
        """Counts the floating-point operations with the weights in training on these tokens."""
        with torch.device("meta"):
            model: Any = build_model(self.family, {"source_vocab": self.vocabulary, **self.sizes})
        encoder, decoder = (float(sum(p.numel() for p in m.parameters())) for m in (model.encoder, model.decoder))
        output: int = self.vocabulary * self.sizes["model_dim"]
        source, target = float(result["source_tokens"]), float(result["tokens"])
        return 6.0 * (encoder * source + (decoder + output) * target)


def prepare_work(folder: Path, scratch: Path, preset: str, batches: int) -> Work:
    data = {"source": str(folder / "train.en.gz"), "target": str(folder / "train.de.gz"), "languages": ["en", "de"]}
    recipe = Recipe.model_validate({"data": data, "tokenizer": {"size": VOCABULARY}})
    prepared = prepare(recipe, folder, scratch)
    store = prepared.training
    planned = PairBatches(store, BATCH_TOKENS, SEED)
    cursors: list[Cursor] = []
    rows: list[Any] = []
    while len(cursors) < batches:
        epoch = 0 if not cursors else cursors[-1].epoch + 1
        plan = planned.planner.plan(epoch)
        cursors += [Cursor(epoch, index) for index in range(len(plan))]
        rows += [plan.rows(index) for index in range(len(plan))]
    arrays: dict[str, Any] = {"order": np.concatenate(rows), "cuts": np.cumsum([0, *map(len, rows)])}
    for side in ("source", "target"):
        arrays[side] = store.slice(side, 0, store.manifest.tokens[side])
        arrays[f"{side}_offsets"] = np.concatenate(([0], np.cumsum(store.lengths(side), dtype=np.int64)))
    np.savez(scratch / "ids.npz", **arrays)
    size = prepared.assets.tokenizers.target.size
    family, named, own = MODELS[preset]
    sizes = require_family(family).resolve(named, own).model_dump(mode="json")
    return Work(store, scratch / "ids.npz", cursors, size, family, sizes)


# ---- rounds


def run(python: Path | str, script: str, request: Figures) -> Figures:
    threads = str(request["threads"])
    surroundings = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"}
    command = [str(python), str(HERE / "peers" / f"{script}_training.py")]
    done = subprocess.run(
        command, input=json.dumps(request), capture_output=True, text=True, check=False, env=surroundings
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    found: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def play(arguments: argparse.Namespace, work: Work) -> tuple[dict[str, list[Figures]], dict[str, str], float]:
    """Runs all rounds; returns each contestant's results, those left out with the reason, and the matmul peak."""
    pythons: dict[str, Path | str] = {}
    left_out: dict[str, str] = {}
    for name in arguments.only:
        peer = CONTESTANTS[name].peer
        try:
            pythons[name] = sys.executable if peer is None else environment(arguments.environments, peer)
        except NotInstalledError as error:
            left_out[name] = f"could not be installed ({error})"
    results: dict[str, list[Figures]] = {name: [] for name in pythons}
    peak = 0.0
    for number in range(arguments.rounds):
        peak = max(peak, run(sys.executable, "matmul", {"threads": arguments.threads})["operations"])
        for name, python in pythons.items():
            if name in left_out:
                continue
            try:
                results[name].append(run(python, CONTESTANTS[name].script, ask(arguments, work, name, number)))
            except RuntimeError as error:
                left_out[name] = f"failed ({error})"
                continue
            rate = results[name][-1]["tokens"] / results[name][-1]["seconds"]
            print(f"round {number + 1} {name:<22} {rate:9,.0f} tokens per second", file=sys.stderr, flush=True)
    return {name: found for name, found in results.items() if found}, left_out, peak


def ask(arguments: argparse.Namespace, work: Work, name: str, number: int) -> Figures:
    first = number * (arguments.steps + WARMUP)
    cursor = work.cursors[first]
    return {
        "store": str(work.store.directory), "ids": str(work.ids), "vocabulary": work.vocabulary, "family": work.family,
        "sizes": work.sizes,
        "batches": CONTESTANTS[name].batches, "options": CONTESTANTS[name].options, "batch_tokens": BATCH_TOKENS,
        "seed": SEED, "first": first, "cursor": [cursor.epoch, cursor.index], "warmup": WARMUP,
        "steps": arguments.steps, "smoothing": SMOOTHING, "threads": arguments.threads,
    }  # fmt: skip


# ---- figures


def summarise(name: str, rounds: list[Figures], work: Work, peak: float) -> Figures:
    rates = [found["tokens"] / found["seconds"] for found in rounds]
    total = {key: sum(found[key] for found in rounds) for key in ("tokens", "positions", "source_tokens")}
    contestant = CONTESTANTS[name]
    return {
        "tokens_per_second": statistics.median(rates), "lowest": min(rates), "highest": max(rates), "rates": rates,
        "mfu": statistics.median(work.operations(found) / found["seconds"] / peak for found in rounds),
        "peak_mb": max(found["peak"] for found in rounds), "parameters": rounds[0]["parameters"],
        "cores_used": sum(f["cpu_seconds"] for f in rounds) / sum(f["seconds"] for f in rounds),
        "source_padding": 1 - total["source_tokens"] / sum(found["source_positions"] for found in rounds),
        "target_padding": 1 - total["tokens"] / total["positions"],
        "first_loss": rounds[0]["losses"][0], "last_loss": rounds[0]["losses"][-1],
        "dropouts": contestant.dropouts, "batches": contestant.batches, "note": contestant.note,
    }  # fmt: skip


def ratios(figures: dict[str, Figures]) -> dict[str, Figures]:
    """Computes the ratio to the best of all peers and to the best with the same dropouts: the median over rounds."""
    found: dict[str, Figures] = {}
    ours = figures.get("headwise")
    for title, wanted in (("best peer", ("all", "outer")), ("best peer with the same dropouts", ("all",))):
        peers = {n: f for n, f in figures.items() if n != "headwise" and f["dropouts"] in wanted}
        if ours is None or not peers:
            continue
        best = max(peers, key=lambda name: peers[name]["tokens_per_second"])
        each = [own / other for own, other in zip(ours["rates"], peers[best]["rates"], strict=False)]
        found[title] = {
            "peer": best, "speed": statistics.median(each), "lowest": min(each), "highest": max(each),
            "memory": ours["peak_mb"] / peers[best]["peak_mb"],
        }  # fmt: skip
    return found


def show(report: Figures) -> None:
    print(
        f"\n{report['preset']}: {report['rounds']} rounds of {report['steps']} updates, {report['threads']} threads, "
        f"matmul peak {report['matmul_peak'] / 1e9:.0f} GF/s, torch {report['torch']}\n"
        f"{'':<22}{'tokens/s':>10}{'lowest-highest':>18}{'MFU':>7}{'RSS MB':>9}{'cores':>7}{'padding':>14}"
        f"{'first loss':>12}{'parameters':>13}  dropouts  batches"
    )
    for name, row in report["contestants"].items():
        spread = f"{row['lowest']:,.0f}-{row['highest']:,.0f}"
        padding = f"{row['source_padding']:.1%} {row['target_padding']:.1%}"
        print(
            f"{name:<22}{row['tokens_per_second']:>10,.0f}{spread:>18}{row['mfu']:>7.1%}{row['peak_mb']:>9,}{row['cores_used']:>7.2f}"
            f"{padding:>14}{row['first_loss']:>12.2f}{row['parameters']:>13,}  {row['dropouts']:<8}  {row['batches']}"
        )
    for title, ratio in report["ratios"].items():
        print(
            f"headwise / {title} ({ratio['peer']}): {ratio['speed']:.2f} "
            f"({ratio['lowest']:.2f}-{ratio['highest']:.2f}), memory {ratio['memory']:.2f}"
        )
    print("\ndropout 0.1 is on: attention, feed-forward, sub-layers, embeddings (all), or the last two only (outer)")
    for name, row in report["contestants"].items():
        if row["note"]:
            print(f"{name}: {row['note']}")
        expected = report["expected_first_loss"]
        if abs(row["first_loss"] - expected) > 1.5:
            print(f"WARNING: {name} starts at {row['first_loss']:.2f}, not near ln V = {expected:.2f}")
    for name, reason in report["left_out"].items():
        print(f"{name}: left out: {reason}")


def as_result(report: Figures) -> Result:
    """Builds the result: speed against all peers and against those with the same dropouts, and memory."""
    settings = {
        "model": report["preset"], "tokens per batch": BATCH_TOKENS, "vocabulary": VOCABULARY, "dropout": 0.1,
        "updates per round": report["steps"],
    }  # fmt: skip
    result = Result(f"training-{report['preset']}", f"Training, {report['preset']}", settings, report["threads"])
    figures = report["contestants"]
    ours = figures.get("headwise")
    if ours is not None:
        peers = {peer_name(name, found): found for name, found in figures.items() if name != "headwise"}
        fair = {name: found for name, found in peers.items() if found["dropouts"] == "all"}
        speed, memory = "target tokens/s", "MB"
        every = {name: found["rates"] for name, found in peers.items()}
        result.add("all peers", speed, ours["rates"], every, headline=True)
        result.add(
            "peers with the same dropouts",
            speed,
            ours["rates"],
            {n: f["rates"] for n, f in fair.items()},
            headline=True,
        )
        peaks = {name: found["peak_mb"] for name, found in peers.items()}
        result.add("most memory", memory, ours["peak_mb"], peaks, better="lower", headline=True)
        result.add("share of the matmul peak", "%", 100 * ours["mfu"], {n: 100 * f["mfu"] for n, f in peers.items()})
    for name, reason in report["left_out"].items():
        result.leave_out(name, reason)
    return result


def peer_name(name: str, found: Figures) -> str:
    dropouts = "" if found["dropouts"] == "all" else ", fewer dropouts"
    titles = {"torch": "torch.nn.Transformer, own batches", "torch-same-batches": "torch.nn.Transformer"}
    titles |= {"huggingface": "Hugging Face MarianMT", "huggingface-dropouts": "Hugging Face MarianMT, all dropouts"}
    titles |= {"opennmt": "OpenNMT-py 3.5.1", "joeynmt": "JoeyNMT 2.3.0"}
    return titles.get(name, name) + dropouts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=list(STEPS), default="tiny")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, help=f"timed updates per round; unset: {STEPS}")
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), metavar="NAME")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--corpora", type=Path, default=os.environ.get("HEADWISE_DATA"))
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    if arguments.corpora is None:
        parser.error("name the folder of the corpora: --corpora DIR")
    arguments.steps = arguments.steps or STEPS[arguments.preset]
    able = [name for name, one in CONTESTANTS.items() if arguments.preset in one.models]
    arguments.only = arguments.only or able
    if unable := sorted({*arguments.only} - {*able}):
        parser.error(f"{unable[0]} has no model for --preset {arguments.preset}")
    with tempfile.TemporaryDirectory() as scratch:
        batches = arguments.rounds * (arguments.steps + WARMUP)
        work = prepare_work(Path(arguments.corpora) / "multi30k", Path(scratch), arguments.preset, batches)
        results, left_out, peak = play(arguments, work)
        figures = {name: summarise(name, rounds, work, peak) for name, rounds in results.items()}
    report = {
        "preset": arguments.preset, "rounds": arguments.rounds, "steps": arguments.steps, "threads": arguments.threads,
        "torch": torch.__version__, "matmul_peak": peak, "expected_first_loss": math.log(work.vocabulary),
        "contestants": figures, "ratios": ratios(figures), "left_out": left_out,
    }  # fmt: skip
    show(report)
    if arguments.json:
        as_result(report).save(arguments.json)


if __name__ == "__main__":
    main()
