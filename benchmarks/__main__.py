"""`make bench`: every benchmark, one after the other. Peers are installed in environments of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
DEMO = "headwise-demo"
# (script, arguments, whether it needs the real corpora)
RUNS = (
    ("kernels.py", (), False),
    ("data.py", (), True),
    ("training.py", ("--preset", "tiny"), True),
    ("training.py", ("--preset", "base", "--rounds", "3"), True),
    # With the demo's model: `headwise demo` makes it where it is missing.
    ("translation.py", ("--model", f"{DEMO}/run/model", "--source", f"{DEMO}/corpus/test.en"), False),
)


def main() -> int:
    failed = []
    if not Path(DEMO, "run/finished.json").is_file():
        subprocess.run([sys.executable, "-m", "headwise", "demo", "--output", DEMO], check=True)
    for script, arguments, corpora in RUNS:
        print(f"\n== {script} {' '.join(arguments)}", flush=True)
        if corpora and not os.environ.get("HEADWISE_DATA"):
            print("left out: HEADWISE_DATA does not name the folder of the corpora")
            continue
        if subprocess.run([sys.executable, str(HERE / script), *arguments], check=False).returncode:
            failed.append(script)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
