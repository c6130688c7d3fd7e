"""Compares language models with peers in one run: tokens per second in training and in generation.

    python benchmarks/language_model.py [--rounds 3] [--steps 4] [--tokens 256] [--only headwise plain] [--json FILE]

A GPT-2 architecture of 4 layers, 256 wide, feed-forward 512, 8 heads, vocabulary 10,000, tied output; fp32, 2
threads, denormals flushed. Words are drawn by Zipf's law: no corpus is needed.

Training: 32 rows of 256 tokens, dropout 0.1 on embeddings, attention and sub-layers, AdamW (fused for all), gradients
clipped. Peers: `plain`, the usual hand-written GPT and loop; Hugging Face GPT-2 with SDPA; x-transformers with its
fused attention, whose dropouts are on embeddings, attention and inside the feed-forward.

Generation: 256 tokens after a prompt of 4, one text and 16 at a time, greedy and sampled at temperature 1, against
Hugging Face `generate` with its cache. Headwise also tokenizes the prompt and decodes the text; the peer gets and
returns ids. The fast engine has int8 weights and generates greedily, 16 texts with a prompt each.

Contestants take turns, round by round, each in its own process, so that other load on the machine affects all equally.
A peer's environment is created under --environments on first use; a peer that cannot be installed is reported.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import DEFAULT, NotInstalledError, environment
from results import Result

HERE = Path(__file__).parent
ROWS, WARMUP, BATCHES = 32, 1, (1, 16)
SIZES = {
    "vocab": 10_000, "model_dim": 256, "num_heads": 8, "layers": 4, "ff_dim": 512, "max_length": 256, "dropout": 0.1,
}  # fmt: skip
# The settings of Headwise that, besides the sizes, make it the same model.
ARRANGEMENT = {
    "norm": "pre", "activation": "gelu-tanh", "positions": "learned", "scale_embeddings": False,
    "activation_dropout": 0.0,
}  # fmt: skip

OURS = ("headwise", "headwise_fast")

Figures = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    title: str
    peer: str | None = None  # whose environment; None: that of this process
    writes: bool = False
    trains: bool = True


CONTESTANTS = {
    "headwise": Contestant("Headwise", writes=True),
    "headwise_fast": Contestant("Headwise, fast engine", writes=True, trains=False),
    "plain": Contestant("plain PyTorch GPT"),
    "huggingface": Contestant("Hugging Face GPT-2", "huggingface", writes=True),
    "xtransformers": Contestant("x-transformers", "xtransformers"),
}


def run(python: Path | str, name: str, request: Figures) -> Figures:
    threads = str(request["threads"])
    surroundings = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [str(python), str(HERE / "peers" / f"{name}_language.py")],
        input=json.dumps(request), capture_output=True, text=True, check=False, env=surroundings,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    found: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def ask(arguments: argparse.Namespace, name: str, work: str, number: int) -> Figures:
    room = SIZES["max_length"] if work == "training" else arguments.tokens + 8
    sizes = {**SIZES, "max_length": room, **(ARRANGEMENT if name in OURS else {})}
    return {
        "work": work, "sizes": sizes, "rows": arguments.rows, "warmup": WARMUP, "steps": arguments.steps,
        "round": number, "threads": arguments.threads, "batches": BATCHES, "tokens": arguments.tokens,
    }  # fmt: skip


def play(arguments: argparse.Namespace) -> tuple[dict[str, list[Figures]], dict[str, list[Figures]], dict[str, str]]:
    """Runs all rounds of training and generation; also returns the contestants left out, with the reason."""
    pythons: dict[str, Path | str] = {}
    left_out: dict[str, str] = {}
    for name in arguments.only:
        peer = CONTESTANTS[name].peer
        try:
            pythons[name] = sys.executable if peer is None else environment(arguments.environments, peer)
        except NotInstalledError as error:
            left_out[name] = f"could not be installed ({error})"
    trained: dict[str, list[Figures]] = {name: [] for name in pythons if CONTESTANTS[name].trains}
    written: dict[str, list[Figures]] = {name: [] for name in pythons if CONTESTANTS[name].writes}
    for number in range(arguments.rounds):
        for work, results in (("training", trained), ("writing", written)):
            for name in [name for name in results if name not in left_out]:
                try:
                    found = run(pythons[name], name, ask(arguments, name, work, number))
                except RuntimeError as error:
                    left_out[name] = f"failed ({error})"
                    continue
                results[name].append(found)
                print(f"round {number + 1} {work:<9} {name:<14} {brief(found)}", file=sys.stderr, flush=True)
    return trained, written, left_out


def brief(found: Figures) -> str:
    if "rates" in found:
        return "  ".join(f"{setting}: {rate:,.0f}/s" for setting, rate in found["rates"].items())
    return (
        f"{found['tokens'] / found['seconds']:,.0f} tokens/s, first loss {found['losses'][0]:.2f}, {found['peak']} MB"
    )


def as_result(
    arguments: argparse.Namespace,
    trained: dict[str, list[Figures]],
    written: dict[str, list[Figures]],
    left_out: dict[str, str],
) -> Result:
    settings = {
        **SIZES,
        "rows": arguments.rows,
        "updates per round": arguments.steps,
        "tokens written": arguments.tokens,
    }
    result = Result("language_model", "Language models", settings, arguments.threads)
    rates = {name: [f["tokens"] / f["seconds"] for f in rounds] for name, rounds in trained.items() if rounds}
    peaks = {name: float(max(f["peak"] for f in rounds)) for name, rounds in trained.items() if rounds}
    if "headwise" in rates:
        result.add("training", "tokens/s", rates["headwise"], others(rates), headline=True)
        result.add("training, most memory", "MB", peaks["headwise"], others(peaks), better="lower")
    for rows in BATCHES:
        for how in ("greedy", "sampled"):
            setting, texts = f"{rows} {how}", "one text" if rows == 1 else f"{rows} texts at once"
            found = {
                name: [figures["rates"][setting] for figures in rounds]
                for name, rounds in written.items()
                if rounds and setting in rounds[0]["rates"]
            }
            for name in [name for name in OURS if name in found]:
                what = f"writing, {texts}, {how}" + (", fast engine (int8)" if name == "headwise_fast" else "")
                headline = how == "sampled" or name == "headwise_fast"
                result.add(what, "tokens/s", found[name], others(found), headline=headline)
    for name, reason in left_out.items():
        result.leave_out(CONTESTANTS[name].title, reason)
    return result


def others(figures: dict[str, Any]) -> dict[str, Any]:
    return {CONTESTANTS[name].title: figure for name, figure in figures.items() if name not in OURS}


def show(result: Result, trained: dict[str, list[Figures]]) -> None:
    for row in result.rows:
        peers = ", ".join(f"{name} {figure:,.0f}" for name, figure in row.peers.items())
        ratio = "" if row.ratio is None else f"; {row.ratio:.2f} × {row.best_peer}"
        print(f"{row.what}: Headwise {row.ours:,.0f} {row.unit}; {peers}{ratio}")
    for name, rounds in trained.items():
        if rounds:
            first = statistics.mean(found["losses"][0] for found in rounds)
            print(f"{CONTESTANTS[name].title}: {rounds[0]['parameters']:,} parameters, first loss {first:.2f}")
    for name, reason in result.left_out.items():
        print(f"{name}: left out: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="timed updates per round")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of a training batch")
    parser.add_argument("--tokens", type=int, default=256, help="tokens of each text")
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS), metavar="NAME")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    trained, written, left_out = play(arguments)
    result = as_result(arguments, trained, written, left_out)
    show(result, trained)
    if result.rows:
        print(f"written to {result.save(arguments.json)}")


if __name__ == "__main__":
    main()
