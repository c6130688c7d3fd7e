"""What attention to long texts costs: four kinds against the length, and against other people's versions.

    python benchmarks/long.py [--lengths 256 … 16384] [--rounds 3] [--parts attention model] [--json FILE]

The same number of tokens for every length (one text of 16,384 tokens, or 64 of 256), so that a kind whose cost is
linear shows a flat line. Attention alone, and a whole classifier of two layers (vocabulary 8,000, width 128, 4 heads);
a forward pass, and a forward and backward pass. The baseline is fused exact attention (F.scaled_dot_product_attention),
not the equation written out. Every figure is from a process of its own, whose peak memory is read too; contestants take
turns. A round's figure is the best of --repeats; the result has the median of the rounds, the lowest and the highest.

Peers, at --peer-lengths: Hugging Face's Longformer and BigBird (their evaluation pattern has the same size) and
performer-pytorch, the same sizes and dropout. The approximation error of FAVOR+: favor_error.py.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from environments import DEFAULT, NotInstalledError, environment
from results import Result

HERE = Path(__file__).parent
KINDS = {
    "exact": "exact (fused)", "window": "Longformer (window 128)", "blocks": "BigBird (blocks of 32)",
    "features": "Performer (128 features)",
}  # fmt: skip
SIZES = {
    "model_dim": 128, "num_heads": 4, "layers": 2, "ff_dim": 256, "window": 128, "block": 32, "features": 128
}  # fmt: skip
# Whose version of a kind, and the script that runs it.
PEERS = {
    "window": ("huggingface", "Hugging Face Longformer", "huggingface_long.py"),
    "blocks": ("huggingface", "Hugging Face BigBird", "huggingface_long.py"),
    "features": ("performer", "performer-pytorch", "performer_long.py"),
}

SHOWN = (1024, 4096, 16384)  # lengths of which the table has rows

Figures = dict[str, float]  # forward, both (seconds), peak (MB)
Key = tuple[str, str, int]  # contestant, part, length


def measure(python: str, script: str, request: dict[str, Any]) -> Figures:
    """Runs one contestant at one length in a process of its own."""
    run = subprocess.run(
        [python, str(HERE / "peers" / script)], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise RuntimeError((run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1])
    figures: Figures = json.loads(run.stdout.strip().splitlines()[-1])
    return figures


def contestants(arguments: argparse.Namespace, result: Result) -> dict[Key, tuple[str, str, dict[str, Any]]]:
    """Everything that is measured in a round: the Python, the script and the request of each."""
    common = {**SIZES, "tokens": arguments.tokens, "threads": arguments.threads, "repeats": arguments.repeats}
    found: dict[Key, tuple[str, str, dict[str, Any]]] = {}
    for length in arguments.lengths:
        for part in arguments.parts:
            for kind in KINDS:
                request = {**common, "kind": kind, "part": part, "length": length}
                found[kind, part, length] = (sys.executable, "headwise_long.py", request)
    for kind, (peer, name, script) in PEERS.items():
        try:
            python = str(environment(arguments.environments, peer)) if "model" in arguments.parts else ""
        except NotInstalledError as error:
            result.leave_out(name, f"could not be installed ({error})")
            continue
        for length in arguments.peer_lengths if python else ():
            found[name, "model", length] = (python, script, {**common, "kind": kind, "part": "model", "length": length})
    return found


def rounds_of(arguments: argparse.Namespace, result: Result) -> dict[Key, list[Figures]]:
    """All figures, one per round; a contestant that fails is left out with its reason."""
    todo = contestants(arguments, result)
    found: dict[Key, list[Figures]] = {key: [] for key in todo}
    for number in range(arguments.rounds):
        for key, (python, script, request) in todo.items():
            try:
                found[key].append(measure(python, script, request))
            except RuntimeError as error:
                result.leave_out(f"{key[0]} at {key[2]:,}", str(error)[:200])
                continue
            print(f"round {number + 1}: {key}: {found[key][-1]}", flush=True)
    return {key: figures for key, figures in found.items() if len(figures) == arguments.rounds}


FIGURES = (
    ("forward", "forward", "ms", 1000),
    ("both", "forward and backward", "ms", 1000),
    ("peak", "peak memory", "MB", 1),
)


def fill(result: Result, found: dict[Key, list[Figures]], arguments: argparse.Namespace) -> None:
    """Rows for each kind against fused exact attention, at three lengths (the picture has all); then for each peer."""
    shown = [length for length in arguments.lengths if length in SHOWN]
    rivals = [
        (kind, part, length, "exact", f"{name}, {part}", KINDS["exact"])
        for part in arguments.parts for kind, name in KINDS.items() if kind != "exact" for length in shown
    ] + [
        (kind, "model", length, name, KINDS[kind], name)
        for kind, (_, name, _) in PEERS.items() for length in arguments.peer_lengths
    ]  # fmt: skip
    for kind, part, length, rival, said, rival_name in rivals:
        ours, theirs = found.get((kind, part, length)), found.get((rival, part, length))
        for figure, what, unit, scale in FIGURES if ours and theirs else ():
            result.add(
                f"{said}, {what}, {length:,} tokens", unit, [scale * one[figure] for one in ours],
                {rival_name: [scale * one[figure] for one in theirs]}, better="lower",
            )  # fmt: skip


def crossovers(found: dict[Key, list[Figures]], arguments: argparse.Namespace, figure: str) -> dict[str, str]:
    """From which measured length on a kind is faster than fused exact attention, in the median and in every round."""
    said = {}
    for part in arguments.parts:
        for kind, name in KINDS.items():
            if kind == "exact":
                continue
            ratios = {
                length: [
                    one[figure] / other[figure]
                    for one, other in zip(found["exact", part, length], found[kind, part, length], strict=True)
                ]
                for length in arguments.lengths
                if ("exact", part, length) in found and (kind, part, length) in found
            }
            usual, always = first_from(ratios, statistics.median), first_from(ratios, min)
            said[f"{name}, {part}"] = f"from {usual} (in every round from {always})"
    return said


def first_from(ratios: dict[int, list[float]], of: Any) -> str:
    """The smallest length from which on all ratios are above 1."""
    lengths = sorted(ratios)
    winning = [length for length in lengths if all(of(ratios[other]) > 1 for other in lengths if other >= length)]
    return f"{winning[0]:,}" if winning else "no length measured"


def growth(found: dict[Key, list[Figures]], arguments: argparse.Namespace) -> dict[str, str]:
    """The time of one text of the longest length over that of one text of half the length: 2 is linear, 4 quadratic."""
    *_, half, whole = sorted(arguments.lengths)
    said = {}
    for part in arguments.parts:
        for kind, name in KINDS.items():
            if (kind, part, half) in found and (kind, part, whole) in found:
                pairs = zip(found[kind, part, whole], found[kind, part, half], strict=True)
                # The batches have the same number of tokens: one text of half the length is half of its batch.
                per_text = [one["both"] / other["both"] * whole / half for one, other in pairs]
                said[f"{name}, {part}"] = f"{statistics.median(per_text):.2f}"
    return said


PANELS = {"forward": "seconds of forward", "both": "seconds of forward and backward", "peak": "peak memory, MB"}


def medians(found: dict[Key, list[Figures]], arguments: argparse.Namespace) -> dict[str, Any]:
    """What the picture shows: by part and figure, by kind, by length."""
    return {
        f"{part}, {figure}": {
            name: {
                str(length): statistics.median(one[figure] for one in found[kind, part, length])
                for length in arguments.lengths if (kind, part, length) in found
            }
            for kind, name in KINDS.items()
        }
        for part in arguments.parts for figure in PANELS
    }  # fmt: skip


def draw(settings: dict[str, Any], file: Path) -> None:
    """Time and peak memory of training against the length, as one SVG; one row for each part."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "headwise"
    panels = settings["medians"]
    rows = len(panels) // len(PANELS)
    figure, axes = plt.subplots(rows, len(PANELS), figsize=(13, 3.2 * rows), layout="constrained", squeeze=False)
    for axis, (panel, curves) in zip(axes.flat, panels.items(), strict=True):
        part, shown = panel.split(", ")
        for name, curve in curves.items():
            axis.plot([int(length) for length in curve], list(curve.values()), marker="o", markersize=3, label=name)
        lengths = [int(length) for length in next(iter(curves.values()))]
        axis.set_xscale("log")
        axis.set_xticks(lengths, [f"{length:,}" for length in lengths], fontsize=8)
        axis.set_title(f"{part}: {PANELS[shown]}", fontsize=10)
        axis.set_xlabel(f"length of a text ({settings['tokens per batch']:,} tokens in all)", fontsize=8)
        if shown == "peak":
            axis.set_ylim(bottom=0)
        else:  # from the fastest to the slowest it is some sixty times
            axis.set_yscale("log")
            axis.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5], ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"])
        axis.minorticks_off()
    axes[0][0].legend(fontsize=7)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="*", default=[256, 512, 1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--peer-lengths", type=int, nargs="*", default=[1024, 4096])
    parser.add_argument("--tokens", type=int, default=16384, help="per batch, whatever the length")
    parser.add_argument("--parts", nargs="*", default=["attention", "model"], choices=["attention", "model"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--picture", type=Path, help="draw time and memory against the length into this SVG file")
    parser.add_argument("--drawn-from", type=Path, help="measure nothing: draw the picture of this result")
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    if arguments.drawn_from:
        settings = json.loads(arguments.drawn_from.read_text(encoding="utf-8"))["settings"]
    else:
        settings = measured(arguments)
    if arguments.picture:
        draw(settings, arguments.picture)


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs and saves the benchmark; returns the settings of its result, which have what the picture shows."""
    result = Result("long", "Long texts", {"tokens per batch": arguments.tokens, **SIZES}, threads=arguments.threads)
    found = rounds_of(arguments, result)
    fill(result, found, arguments)
    result.settings["faster than exact attention"] = crossovers(found, arguments, "both")
    result.settings["forward faster than exact attention"] = crossovers(found, arguments, "forward")
    result.settings["time of twice the length"] = growth(found, arguments)
    result.settings["medians"] = medians(found, arguments)
    print(json.dumps(result.settings, indent=1))
    print(result.save(arguments.json))
    return result.settings


if __name__ == "__main__":
    main()
