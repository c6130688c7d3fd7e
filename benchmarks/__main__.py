"""Runs the benchmarks against peers, one after the other, and writes the tables.

    python -m benchmarks              (make bench) runs all of them, then writes the tables; hours, on a quiet machine
    python -m benchmarks run NAME …   some of them
    python -m benchmarks table        only the tables, from the stored results

Results are stored as benchmarks/results/NAME.json (see results.py). Each peer is installed in an environment of its
own. A benchmark whose script or corpus is missing is skipped with a message.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import FOLDER, load_results
from benchmarks.table import write_tables

HERE = Path(__file__).parent
# A model that comes with Headwise, on the text that it is for.
MODEL = HERE.parent / "src" / "headwise" / "shipped" / "multi30k-en-de"
SOURCE = Path(os.environ.get("HEADWISE_DATA", "")) / "multi30k" / "test_2016_flickr.en.gz"
ON_MODEL = ("--model", str(MODEL), "--source", str(SOURCE))


@dataclass(frozen=True)
class Run:
    script: str
    arguments: tuple[str, ...] = ()
    corpora: bool = True  # needs HEADWISE_DATA
    needs: str = ""  # another variable that must be set


RUNS = {
    "kernels": Run("kernels.py", corpora=False),
    "data": Run("data.py"),
    "training-tiny": Run("training.py", ("--preset", "tiny")),
    "training-base": Run("training.py", ("--preset", "base", "--rounds", "3")),
    "training-rnn": Run("training.py", ("--preset", "rnn")),
    "language_model": Run("language_model.py", corpora=False),
    "images": Run("images.py", corpora=False),
    "images-quality": Run("images.py", ("--quality",), corpora=False),
    "long": Run("long.py", ("--picture", str(HERE.parent / "docs" / "pictures" / "long.svg")), corpora=False),
    "translation": Run("translation.py", ON_MODEL),
    "serving": Run("serving.py", ON_MODEL),
    "serving_tasks": Run("serving_tasks.py"),
    "startup": Run("startup.py", ON_MODEL),
    "importing": Run("importing.py", corpora=False),
    "transcription": Run("transcription.py"),
    "scaling": Run("scaling.py", corpora=False),
    "time_to_quality": Run("time_to_quality.py"),
    "first_try": Run("first_try.py"),
    "classification": Run("classification.py", needs="HEADWISE_MINILM"),
    "classification-speed": Run("classification.py", ("--parts", "speed"), needs="HEADWISE_MINILM"),
}


def main(arguments: Sequence[str]) -> int:
    verb, *names = arguments or ["run"]
    unknown = [name for name in names if name not in RUNS]
    if verb not in ("run", "table") or unknown:
        print(f"{__doc__}\nthere are {', '.join(RUNS)}", file=sys.stderr)
        return 2
    failed = [name for name in names or RUNS if not run(name)] if verb == "run" else []
    for page in write_tables(load_results()):
        print(f"{page} has no place for a table (<!-- table --> … <!-- /table -->)")
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


def run(name: str) -> bool:
    """Runs one benchmark; returns False if it failed. One that cannot run here is skipped, which is not a failure."""
    wanted = RUNS[name]
    print(f"\n== {name}: {wanted.script} {' '.join(wanted.arguments)}", flush=True)
    if not (HERE / wanted.script).is_file():
        print("skipped: the script is missing")
        return True
    if wanted.corpora and not os.environ.get("HEADWISE_DATA"):
        print("skipped: HEADWISE_DATA is not the folder of the corpora")
        return True
    if wanted.needs and not os.environ.get(wanted.needs):
        print(f"skipped: {wanted.needs} is not set")
        return True
    command = [sys.executable, str(HERE / wanted.script), *wanted.arguments, "--json", str(FOLDER / f"{name}.json")]
    return subprocess.run(command, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
