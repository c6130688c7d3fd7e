"""Time to quality: BLEU on validation text against minutes of training, for Headwise and two peers.

    python benchmarks/time_to_quality.py [--minutes 28] [--only torch opennmt headwise headwise-short] [--again NAME …]

Multi30k en-de from --corpora (or HEADWISE_DATA), the vocabulary and sizes with which the peers were tuned, 2 threads,
fp32. Contestants run one after the other, each in its own process; every point is saved in --work at once, and a
contestant that has finished is not run again. The output is results/time_to_quality.json and a picture.

The peers are a plain loop on torch.nn.Transformer, tuned for this corpus (1,024 tokens per batch, pre-norm, dropout
0.2, inverse square root with warm-up 800 to 2.5e-3), and OpenNMT-py's model and loss with the same settings; they get
the batches of Headwise, which runs its recipe with a schedule that ends with the time: `headwise` all of the minutes,
`headwise-short` half of them. All are decoded greedily and scored in the same way; the clock is stopped meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from environments import DEFAULT, NotInstalledError, environment
from results import FOLDER, Result

from headwise.config.recipe import load_recipe
from headwise.config.schema import Recipe
from headwise.data.pairs import PairBatches
from headwise.evaluation.metrics import bleu
from headwise.tasks.interface import Prepared
from headwise.text.corpus import read_lines
from headwise.workflows.prepare import prepare

HERE = Path(__file__).parent
RECIPE = "multi30k-en-de"
EPOCHS = 40  # prepared for the peers, which start again after them
SEED, TOKENS, RATE, WARMUP = 1, 1024, 2.5e-3, 800  # the peers' settings, except the sizes
PICTURE = HERE.parent / "docs" / "pictures" / "time_to_quality.svg"
# The script, whose environment, and the share of the minutes.
CONTESTANTS: dict[str, tuple[str, str | None, float]] = {
    "headwise-short": ("headwise", None, 0.5),
    "headwise": ("headwise", None, 1.0),
    "torch": ("torch", None, 1.0),
    "opennmt": ("opennmt", "opennmt", 1.0),
}
NAMES = {
    "headwise-short": "Headwise, half the time",
    "headwise": "Headwise",
    "torch": "torch.nn.Transformer",
    "opennmt": "OpenNMT-py 3.5.1",
}
# Settings of all contestants that differ from the recipe.
SAME = {"tokenizer.size": 6000, "model.ff_dim": 256}
# Settings of a half-hour run that differ from the recipe, which trains longer.
CHANGES = {
    "training.ema": 0.998, "model.dropout": 0.1, "model.attention_dropout": 0.1, "model.activation_dropout": 0.1,
}  # fmt: skip

# Part of the difference is due to the recipe rather than the speed, which the table states.
RECIPES_DIFFER = "ours with cosine decay and averaged weights, theirs without"

Point = dict[str, float]
Curves = dict[str, dict[str, Any]]


class Work:
    """The corpus of all contestants: the prepared text, the peers' token ids, and the scorer of their outputs."""

    def __init__(self, corpora: Path, folder: Path, sentences: int) -> None:
        self.recipe, base = load_recipe(RECIPE, [f"{name}={value}" for name, value in SAME.items()], corpora)
        self.prepared: Prepared = prepare(self.recipe, base, folder / "cache")
        self.ids = folder / "ids.npz"
        lines = {side: _read(self.recipe, base, side)[:sentences] for side in ("source", "target")}
        self.references = lines["target"]
        self._write(lines["source"])

    @property
    def vocabulary(self) -> int:
        return self.prepared.assets.tokenizers.target.size

    @property
    def sizes(self) -> dict[str, Any]:
        return {**self.recipe.model.settings.model_dump(mode="json"), "norm": "pre", "dropout": 0.2}

    def score(self, outputs: list[list[int]]) -> float:
        texts = self.prepared.assets.tokenizers.target.decode_batch(outputs)
        return bleu([text.strip() for text in texts], self.references, language="de").value

    def _write(self, validation: list[str]) -> None:
        store = self.prepared.training
        planner = PairBatches(store, TOKENS, SEED).planner
        plans = [planner.plan(epoch) for epoch in range(EPOCHS)]
        rows = [plan.rows(index) for plan in plans for index in range(len(plan))]
        arrays: dict[str, Any] = {"order": np.concatenate(rows), "cuts": np.cumsum([0, *map(len, rows)])}
        for side in ("source", "target"):
            arrays[side] = store.slice(side, 0, store.manifest.tokens[side])
            arrays[f"{side}_offsets"] = np.concatenate(([0], np.cumsum(store.lengths(side), dtype=np.int64)))
        ids = self.prepared.assets.tokenizers.source.encode_batch(validation)
        arrays["validation"] = np.concatenate([np.array(sentence, dtype=np.int64) for sentence in ids])
        arrays["validation_offsets"] = np.cumsum([0, *map(len, ids)])
        np.savez(self.ids, **arrays)


def _read(recipe: Recipe, base: Path, side: str) -> list[str]:
    return [line.text for file in getattr(recipe.data.validation, side) for line in read_lines(str(base / file))]


# ---- running


def request(arguments: argparse.Namespace, work: Work, name: str) -> dict[str, Any]:
    minutes = arguments.minutes * CONTESTANTS[name][2]
    changes = {**SAME, **CHANGES, "training.validation_sentences": arguments.sentences}
    return {
        "ids": str(work.ids), "vocabulary": work.vocabulary, "sizes": work.sizes, "smoothing": 0.1, "seed": SEED,
        "rate": RATE, "warmup": WARMUP, "threads": arguments.threads, "minutes": minutes, "every": arguments.every,
        "recipe": RECIPE, "corpora": str(arguments.corpora), "settings": changes, "work": str(arguments.work / name),
    }  # fmt: skip


def lines_of(python: Path | str, script: str, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields what a contestant prints, as it arrives."""
    threads = str(asked["threads"])
    surroundings = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    command = [str(python), str(HERE / "peers" / f"{script}_quality.py")]
    log = Path(asked["work"]).with_suffix(".log")
    with (
        open(log, "w", encoding="utf-8") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=surroundings
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked))
        process.stdin.close()
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if process.returncode:
        last = log.read_text(encoding="utf-8").strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise RuntimeError(f"{script} failed: {last[0]} ({log})")


def play(arguments: argparse.Namespace, work: Work, curves: Curves, file: Path) -> None:
    for name in arguments.only:
        script, peer, share = CONTESTANTS[name]
        known = curves.get(name, {})
        if known.get("finished") and known["minutes"] == arguments.minutes * share and name not in arguments.again:
            print(f"{name}: kept from an earlier run", file=sys.stderr)
            continue
        try:
            python = sys.executable if peer is None else environment(arguments.environments, peer)
        except NotInstalledError as error:
            curves[name] = {"left_out": f"could not be installed ({error})", "points": []}
            continue
        curves[name] = {"minutes": arguments.minutes * share, "points": [], "finished": False}
        try:
            for found in lines_of(python, script, request(arguments, work, name)):
                score = found["bleu"] if "bleu" in found else work.score(found["outputs"])
                minutes, updates = found["minutes"], found["updates"]
                curves[name]["points"].append({"minutes": minutes, "updates": updates, "bleu": score})
                print(f"{name:<15}{minutes:7.2f} min {updates:7} updates  BLEU {score:6.2f}", flush=True)
                keep(file, curves)
            curves[name]["finished"] = True
        except RuntimeError as error:
            curves[name]["left_out"] = str(error)
        keep(file, curves)


def keep(file: Path, curves: Curves) -> None:
    new = file.with_suffix(".new")
    new.write_text(json.dumps(curves, indent=1) + "\n", encoding="utf-8")
    new.replace(file)


# ---- figures


def reached(points: list[Point], score: float) -> float | None:
    """Returns the minutes until a curve first reaches `score`, interpolated linearly between validations."""
    before: Point | None = None
    for point in points:
        if point["bleu"] >= score:
            if before is None:
                return point["minutes"]
            share = (score - before["bleu"]) / (point["bleu"] - before["bleu"])
            return before["minutes"] + share * (point["minutes"] - before["minutes"])
        before = point
    return None


def best_until(points: list[Point], minutes: float) -> float | None:
    """Returns the best validation score so far, as a user would keep that model."""
    return max((point["bleu"] for point in points if point["minutes"] <= minutes * 1.02), default=None)


def pace(points: list[Point]) -> float:
    """Returns the updates per minute over the whole run."""
    return points[-1]["updates"] / points[-1]["minutes"]


def summarise(curves: Curves, minutes: float, threads: int) -> Result:
    # Contestants run one after the other, and the speed of a machine varies over time.
    paces = [f"{NAMES[name]} {pace(curve['points']):.0f}" for name, curve in curves.items() if curve["points"]]
    settings = {
        "recipe": RECIPE, "minutes": minutes, "signature": "val, greedy, sacreBLEU default",
        "updates per minute": "; ".join(paces), "curves": curves,
    }  # fmt: skip
    result = Result("time_to_quality", "Time to quality, Multi30k en→de", settings, threads)
    for name, curve in curves.items():
        if "left_out" in curve:
            result.leave_out(NAMES[name], curve["left_out"])
    peers = {NAMES[name]: curves[name]["points"] for name in ("torch", "opennmt") if curves.get(name, {}).get("points")}
    goals = {name: score for name, points in peers.items() if (score := best_until(points, minutes))}
    better = max(goals, key=lambda name: goals[name], default=None)
    # Each of our runs has its own rows: comparing the better of two runs with one run of a peer would be unfair.
    for name in ("headwise", "headwise-short"):
        points, end = curves.get(name, {}).get("points", []), minutes * CONTESTANTS[name][2]
        for share in (0.25, 0.5, 1.0):
            score = best_until(points, minutes * share)
            if score and minutes * share <= end:
                theirs = {n: found for n, p in peers.items() if (found := best_until(p, minutes * share))}
                what = f"best BLEU on validation after {minutes * share:g} minutes, schedule of {end:g}"
                result.add(what, "BLEU", score, theirs, headline=minutes * share == end, note=RECIPES_DIFFER)
        if points and better is not None:
            goal = f"the BLEU that {better} has after {minutes:g} minutes ({goals[better]:.1f})"
            what = f"time to {goal}, schedule of {end:g}"
            ours, took = reached(points, goals[better]), reached(peers[better], goals[better])
            if ours and took:
                # The headline is the short schedule; the long one is on the page only.
                asked = name == "headwise-short"
                result.add(what, "minutes", ours, {better: took}, better="lower", headline=asked, note=RECIPES_DIFFER)
            else:
                result.leave_out(what, "not reached")
    return result


def draw(curves: Curves, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "headwise"  # the same figures give the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for name, curve in curves.items():
        if not curve["points"]:
            continue
        minutes, scores = zip(*((point["minutes"], point["bleu"]) for point in curve["points"]), strict=True)
        ours = name.startswith("headwise")
        axes.plot(
            minutes, scores, "o-" if ours else "s--", label=NAMES[name], linewidth=2 if ours else 1.4, markersize=4
        )
    axes.set(
        xlabel="minutes of training, two cores", ylabel="BLEU on validation, greedy", xlim=(0, None), ylim=(0, None)
    )
    axes.set_title("Multi30k English to German, the same vocabulary, sizes and machine", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=28.0, help="of training, for each contestant")
    parser.add_argument("--every", type=float, help="minutes between validations; unset: a fourteenth of all")
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS), metavar="NAME")
    parser.add_argument("--again", nargs="*", choices=list(CONTESTANTS), default=[], metavar="NAME")
    parser.add_argument("--sentences", type=int, default=1100, help="of validation; fewer for a trial")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--corpora", type=Path, default=os.environ.get("HEADWISE_DATA"))
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--work", type=Path, default=DEFAULT / "time_to_quality", help="where points are kept")
    parser.add_argument("--json", type=Path, default=FOLDER / "time_to_quality.json", help="where the result goes")
    parser.add_argument("--picture", type=Path, default=PICTURE, help=".svg or .png")
    arguments = parser.parse_args()
    if arguments.corpora is None:
        parser.error("name the folder of the corpora: --corpora DIR")
    arguments.corpora = Path(arguments.corpora)
    arguments.every = arguments.every or arguments.minutes / 14
    arguments.work.mkdir(parents=True, exist_ok=True)
    file = arguments.work / "curves.json"
    curves: Curves = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    play(arguments, Work(arguments.corpora, arguments.work, arguments.sentences), curves, file)
    result = summarise(curves, arguments.minutes, arguments.threads)
    for row in result.rows:
        print(f"{row.what}: Headwise {row.ours:.2f}, " + ", ".join(f"{n} {v:.2f}" for n, v in row.peers.items()))
    for what, reason in result.left_out.items():
        print(f"{what}: {reason}")
    draw(curves, arguments.picture)
    print(f"wrote {result.save(arguments.json)} and {arguments.picture}")


if __name__ == "__main__":
    main()
