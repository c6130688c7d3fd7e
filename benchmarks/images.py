"""Compares Vision Transformers with peers in one run: training speed, classifying files, and quality at equal minutes.

    python benchmarks/images.py [--rounds 3] [--steps 6] [--pictures 10000] [--json FILE]
    python benchmarks/images.py --quality [--minutes 25] [--data FOLDER] [--json FILE]

Speed: a ViT of 6 layers, 192 wide, feed-forward 768, 3 heads, on grey pictures of 28 × 28 in patches of 4; fp32, 2
threads, denormals flushed, random weights. Training: 64 pictures an update, AdamW (fused for all), gradients clipped,
dropout 0.1. Hugging Face's ViT has it on embeddings, attention weights and sub-layers, vit-pytorch also inside of the
feed-forward: Headwise is measured with both sets of dropouts, and each peer is compared with its own. Classifying: PNG
files from disk, reading and decoding included, in batches of 64. Hugging Face reads with its image processor (the one
on PIL: torchvision's wheels do not fit a torch without CUDA), vit-pytorch, which has none, with PIL in a DataLoader of
2 processes. vit-pytorch is not quite the paper's ViT: it has two more norms, and no biases of queries, keys and values.

Quality: accuracy on the 10,000 test pictures of Fashion-MNIST after the same minutes on the same threads, by processor
time per thread, which other load on the machine changes less than the clock. Headwise runs its recipe `fashion-mnist`
with a schedule that fits the minutes. The peers, a plain ViT of the same size on torch.nn.TransformerEncoder and a
small CNN, get the same pictures, augmentation, optimizer, schedule, label smoothing and averaged weights, from a loop
on torch alone. How many updates fit is measured on some of them first.

Contestants take turns, round by round, each in its own process, so that other load on the machine affects all equally.
A peer's environment is created under --environments on first use; a peer that cannot be installed is reported.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from environments import DEFAULT, NotInstalledError, environment
from PIL import Image
from results import Result

HERE = Path(__file__).parent
FASHION = Path("/usr/share/datasets/fashion-mnist")  # the Debian package dataset-fashion-mnist
WARMUP, BATCH = 2, 64
SIZES = {
    "image_size": 28, "patch_size": 4, "channels": 1, "classes": 10, "model_dim": 192, "num_heads": 3, "layers": 6,
    "ff_dim": 768, "dropout": 0.1,
}  # fmt: skip

Figures = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    title: str
    script: str
    peer: str | None = None  # whose environment; None: that of this process
    sizes: tuple[tuple[str, Any], ...] = ()  # besides SIZES
    works: tuple[str, ...] = ("training", "classifying")


CONTESTANTS = {
    "headwise": Contestant("Headwise", "headwise", sizes=(("activation_dropout", 0.0),)),
    "huggingface": Contestant("Hugging Face ViT", "huggingface", "huggingface"),
    "headwise-inner": Contestant("Headwise, dropout in the feed-forward too", "headwise", works=("training",)),
    "vit-pytorch": Contestant("vit-pytorch", "vitpytorch", "vit-pytorch"),
}
QUALITY = {
    "headwise": Contestant("Headwise", "headwise", works=("quality",)),
    "vit": Contestant("plain PyTorch ViT", "torch", sizes=(("model", "vit"),), works=("quality",)),
    "cnn": Contestant("small CNN", "torch", sizes=(("model", "cnn"),), works=("quality",)),
}


def run(python: Path | str, script: str, request: Figures) -> Figures:
    threads = str(request["threads"])
    surroundings = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [str(python), str(HERE / "peers" / f"{script}_images.py")],
        input=json.dumps(request), capture_output=True, text=True, check=False, env=surroundings,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    found: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def play(
    arguments: argparse.Namespace, contestants: dict[str, Contestant], common: Figures
) -> tuple[dict[str, dict[str, list[Figures]]], dict[str, str]]:
    """Runs all rounds; returns the figures of each work by contestant, and those left out with the reason."""
    pythons: dict[str, Path | str] = {}
    left_out: dict[str, str] = {}
    for name, one in contestants.items():
        try:
            pythons[name] = sys.executable if one.peer is None else environment(arguments.environments, one.peer)
        except NotInstalledError as error:
            left_out[name] = f"could not be installed ({error})"
    works = dict.fromkeys(work for one in contestants.values() for work in one.works)
    results: dict[str, dict[str, list[Figures]]] = {work: {} for work in works}
    for number in range(arguments.rounds):
        for work, found in results.items():
            for name in [name for name in pythons if work in contestants[name].works and name not in left_out]:
                one = contestants[name]
                request = {**common, "work": work, "round": number, "sizes": {**SIZES, **dict(one.sizes)}}
                try:
                    found.setdefault(name, []).append(run(pythons[name], one.script, request))
                except RuntimeError as error:
                    left_out[name] = f"failed ({error})"
                    continue
                print(f"round {number + 1} {work:<11} {name:<15} {brief(found[name][-1])}", file=sys.stderr, flush=True)
    return results, left_out


def brief(found: Figures) -> str:
    if "accuracy" in found:
        return f"{found['accuracy']:.4f} after {found['minutes']:.1f} minutes, {found['updates']:,} updates"
    return f"{found['pictures'] / found['seconds']:,.0f} pictures/s, {found['parameters']:,} weights"


# ---- speed


def write_pictures(folder: Path, data: Path, count: int) -> list[str]:
    """Writes test pictures of Fashion-MNIST, or random ones where they are missing, as PNG files."""
    file = data / "t10k-images-idx3-ubyte.gz"
    if file.is_file():
        with gzip.open(file) as stream:
            pixels = np.frombuffer(stream.read(), dtype=np.uint8, offset=16).reshape(-1, 28, 28)
    else:
        pixels = np.random.default_rng(1).integers(0, 256, (1000, 28, 28), dtype=np.uint8)
    names = [str(folder / f"{number:05}.png") for number in range(count)]
    for number, name in enumerate(names):
        Image.fromarray(pixels[number % len(pixels)]).save(name)
    return names


def speed(arguments: argparse.Namespace) -> Result:
    with tempfile.TemporaryDirectory() as scratch:
        names = write_pictures(Path(scratch), arguments.data, arguments.pictures)
        (Path(scratch) / "names.json").write_text(json.dumps(names))
        common = {
            "batch": BATCH, "warmup": WARMUP, "steps": arguments.steps, "threads": arguments.threads,
            "names": str(Path(scratch) / "names.json"), "folder": scratch,
        }  # fmt: skip
        results, left_out = play(arguments, CONTESTANTS, common)
    settings = {**SIZES, "pictures per update": BATCH, "updates per round": arguments.steps}
    result = Result("images", "Pictures", settings, arguments.threads)
    rates = {work: {name: [f["pictures"] / f["seconds"] for f in rounds] for name, rounds in found.items()}
             for work, found in results.items()}  # fmt: skip
    peaks = {name: float(max(f["peak"] for f in rounds)) for name, rounds in results["training"].items()}
    pairs = (("headwise", "huggingface", "its dropouts"), ("headwise-inner", "vit-pytorch", "its dropouts"))
    for ours, peer, note in pairs:
        if ours in rates["training"] and peer in rates["training"]:
            theirs = {CONTESTANTS[peer].title: rates["training"][peer]}
            what = f"training, beside {CONTESTANTS[peer].title}"
            result.add(what, "pictures/s", rates["training"][ours], theirs, headline=True, note=note)
            theirs = {CONTESTANTS[peer].title: peaks[peer]}
            result.add(f"{what}, most memory", "MB", peaks[ours], theirs, better="lower")
    files = rates["classifying"]
    if "headwise" in files:
        peers = {CONTESTANTS[name].title: figures for name, figures in files.items() if name != "headwise"}
        result.add(f"classifying {arguments.pictures:,} files", "pictures/s", files["headwise"], peers, headline=True)
    for name, reason in left_out.items():
        result.leave_out(CONTESTANTS[name].title, reason)
    return result


# ---- quality


def quality(arguments: argparse.Namespace) -> Result:
    arguments.rounds = 1
    with tempfile.TemporaryDirectory() as scratch:
        common = {
            "data": str(arguments.data), "minutes": arguments.minutes, "threads": arguments.threads, "folder": scratch,
        }  # fmt: skip
        results, left_out = play(arguments, QUALITY, common)
    found = {name: rounds[0] for name, rounds in results["quality"].items()}
    about = {f"{QUALITY[name].title}": f"{one['parameters']:,} weights, {one['updates']:,} updates"
             for name, one in found.items()}  # fmt: skip
    settings = {"data": "Fashion-MNIST, test", "minutes": arguments.minutes, **about}
    result = Result("images-quality", "Pictures, quality at equal minutes", settings, arguments.threads)
    if "headwise" in found:
        right = {name: 100 * one["accuracy"] for name, one in found.items()}
        peers = {QUALITY[name].title: value for name, value in right.items() if name != "headwise"}
        what = f"accuracy after {arguments.minutes:g} minutes"
        result.add(what, "%", right["headwise"], peers, headline=True, note="one run each")
    for name, reason in left_out.items():
        result.leave_out(QUALITY[name].title, reason)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quality", action="store_true", help="accuracy at equal minutes instead of speed")
    parser.add_argument("--minutes", type=float, default=25.0, help="of training, for each contestant of --quality")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6, help="timed updates per round")
    parser.add_argument("--pictures", type=int, default=10_000, help="files to classify")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=FASHION, help="folder with the idx files of Fashion-MNIST")
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    if arguments.quality and not (arguments.data / "train-images-idx3-ubyte.gz").is_file():
        parser.error(f"{arguments.data} has no Fashion-MNIST: apt-get install dataset-fashion-mnist, or --data FOLDER")
    result = quality(arguments) if arguments.quality else speed(arguments)
    for row in result.rows:
        peers = ", ".join(f"{name} {figure:,.2f}" for name, figure in row.peers.items())
        ratio = "" if row.ratio is None else f"; {row.ratio:.2f} × {row.best_peer}"
        print(f"{row.what}: Headwise {row.ours:,.2f} {row.unit}; {peers}{ratio}")
    for name, reason in result.left_out.items():
        print(f"{name}: left out: {reason}")
    if result.rows:
        print(f"written to {result.save(arguments.json)}")


if __name__ == "__main__":
    main()
