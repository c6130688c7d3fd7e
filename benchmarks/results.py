"""The format of all benchmark results. A script fills a `Result` and saves it; `python -m benchmarks table` reads it.

    from results import Result                       # a script in this folder

    result = Result("serving", "Serving", settings={"clients": 8, "model": "tiny"}, threads=2)
    result.add("requests answered, 8 clients", "requests/s", ours=[91.0, 95.2], peers={"LibreTranslate": [30.1, 28.8]})
    result.add("95th percentile", "ms", ours=[40.0, 41.5], peers={"LibreTranslate": [110.0, 96.0]}, better="lower")
    result.leave_out("Sockeye 3.1.34", "could not be installed (asks for torch < 1.14)")
    result.save(arguments.json)                      # a file; None is benchmarks/results/serving.json

A script takes the path as `--json FILE`; `python -m benchmarks` passes benchmarks/results/NAME.json.

`ours` and each peer's value are one figure, or a list with one figure per round, in which contestants took turns. The
file has the medians. The ratio is the median of the ratios within each round, against the peer with the best median;
the spread is the lowest and the highest of them. A ratio above 1 always means that Headwise is better, whichever
direction `better` is. A row without peers has only our own figure; `headline=True` also puts a row into the README's
table. The file:

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
    """One comparison: our figure, the peers' figures, and the ratio."""

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
    """The result of one benchmark. `threads` is the number per contestant; the machine is described on creation."""

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
        """Records a peer that could not be installed or run, with the reason."""
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
        # If one side has fewer rounds, the other's last rounds have no partner and count only in the median.
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
    """Describes the machine: the processor, its current matmul peak, and the versions of libraries."""
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
    """Measures the operations per second of fp32 matrix products, in a separate process."""
    surroundings = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    command = [sys.executable, str(HERE / "peers" / "matmul_training.py")]
    request = json.dumps({"threads": threads})
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=True, env=surroundings)
    return float(json.loads(done.stdout)["operations"])


def load_results(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Loads all saved results, sorted by file name."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
