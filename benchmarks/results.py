"""The one form of a benchmark's result. A script fills a `Result` and saves it; `python -m benchmarks table` reads it.

    from results import Result                       # a script in this folder

    result = Result("serving", "Serving", settings={"clients": 8, "model": "tiny"}, threads=2)
    result.add("requests answered, 8 clients", "requests/s", ours=[91.0, 95.2], peers={"LibreTranslate": [30.1, 28.8]})
    result.add("95th percentile", "ms", ours=[40.0, 41.5], peers={"LibreTranslate": [110.0, 96.0]}, better="lower")
    result.leave_out("Sockeye 3.1.34", "could not be installed (asks for torch < 1.14)")
    result.save(arguments.json)                      # a file; None is benchmarks/results/serving.json

A script takes `--json FILE` for that place; `python -m benchmarks` gives it benchmarks/results/NAME.json.

`ours` and each peer's value are one figure, or a list of one figure per round, in which contestants took turns. Kept
are the medians; the ratio is the median of the rounds' own ratios against the peer with the best median, its spread the
lowest and highest of them. A ratio above 1 always means that Headwise is better, whichever direction `better` is. A row
without peers is a figure of ours alone; `headline=True` puts a row into the README's table as well. The file:

    {"benchmark": "serving", "title": "Serving", "settings": {…}, "date": "2026-11-15",
     "machine": {"cpu": "…", "cores": 2, "threads": 2, "matmul_gflops": 187.0, "versions": {"torch": "2.13.0", …}},
     "rows": [{"what": "…", "unit": "requests/s", "better": "higher", "ours": 93.1, "peers": {"LibreTranslate": 29.4},
               "best_peer": "LibreTranslate", "ratio": 3.16, "spread": [3.02, 3.31], "rounds": 2, "headline": false,
               "note": ""}],
     "left_out": {"Sockeye 3.1.34": "could not be installed (…)"}}
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
FOLDER = HERE / "results"
VERSIONS = ("headwise", "torch", "ctranslate2", "tokenizers", "numpy")

Better = Literal["higher", "lower"]
Figure = float | Sequence[float]


@dataclass(frozen=True)
class Row:
    """One comparison: our figure, the peers', and how many times better we are."""

    what: str
    unit: str
    better: Better
    ours: float
    peers: dict[str, float]
    best_peer: str | None
    ratio: float | None
    spread: tuple[float, float] | None
    rounds: int
    headline: bool = False
    note: str = ""


@dataclass
class Result:
    """What one benchmark found. `threads` is what the contestants had; the machine is described when it is made."""

    benchmark: str  # the file's name: short, lower case
    title: str
    settings: dict[str, Any] = field(default_factory=dict)
    threads: int = 2
    rows: list[Row] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        what: str,
        unit: str,
        ours: Figure,
        peers: Mapping[str, Figure] | None = None,
        *,
        better: Better = "higher",
        headline: bool = False,
        note: str = "",
    ) -> Row:
        row = compare(what, unit, ours, peers or {}, better)
        row = Row(**{**row.__dict__, "headline": headline, "note": note})
        self.rows.append(row)
        return row

    def leave_out(self, peer: str, reason: str) -> None:
        """A peer that could not be installed or run is named, with the reason."""
        self.left_out[peer] = reason

    def save(self, file: Path | None = None) -> Path:
        file = file or FOLDER / f"{self.benchmark}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "benchmark": self.benchmark,
            "title": self.title,
            "date": datetime.date.today().isoformat(),
            "settings": self.settings,
            "machine": machine(self.threads),
            "rows": [asdict(row) for row in self.rows],
            "left_out": self.left_out,
        }
        file.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return file


def compare(what: str, unit: str, ours: Figure, peers: Mapping[str, Figure], better: Better) -> Row:
    own = _rounds(ours)
    others = {name: _rounds(figure) for name, figure in peers.items()}
    medians = {name: statistics.median(rounds) for name, rounds in others.items()}
    best = (max if better == "higher" else min)(medians, key=lambda name: medians[name]) if medians else None
    ratio = spread = None
    if best is not None:
        # Where one side has fewer rounds, its last ones have no partner and only count in the median.
        pairs = zip(own, others[best], strict=False)
        each = [mine / other if better == "higher" else other / mine for mine, other in pairs]
        ratio, spread = statistics.median(each), (min(each), max(each))
    return Row(what, unit, better, statistics.median(own), medians, best, ratio, spread, len(own))


def _rounds(figure: Figure) -> list[float]:
    rounds = [float(figure)] if isinstance(figure, (int, float)) else [float(value) for value in figure]
    if not rounds or min(rounds) <= 0:
        raise ValueError(f"a figure must be one positive number or several, not {figure!r}")
    return rounds


def machine(threads: int) -> dict[str, Any]:
    """What was measured on: the processor, its matmul peak at this moment, and the versions."""
    versions = {"python": platform.python_version()}
    for name in VERSIONS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0))
    return {
        "cpu": processor(),
        "cores": cores,
        "threads": threads,
        "matmul_gflops": round(matmul_peak(threads) / 1e9, 1),
        "versions": versions,
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def matmul_peak(threads: int) -> float:
    """Operations per second of fp32 matrix products, in a process of its own."""
    surroundings = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    command = [sys.executable, str(HERE / "peers" / "matmul_training.py")]
    request = json.dumps({"threads": threads})
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=True, env=surroundings)
    return float(json.loads(done.stdout)["operations"])


def load_results(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Every saved result, in the order of the files' names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
