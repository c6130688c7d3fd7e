"""Measures the import of a published model of 75 million weights: its time beside reading the file, and its memory.

    python benchmarks/importing.py [--vocabulary 60000] [--rounds 5] [--json FILE]

The model is a MarianMT of OPUS-MT's size with random weights, in the layout of the Hugging Face Hub. Every run is a
process of its own, and contestants take turns; time begins when libraries are imported. `read` copies all tensors of
the file into memory, as a program that computes with them would; the file is in the disk cache for both.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from results import Result

from headwise.bundle.weights import save_model
from headwise.config import schema
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair
from headwise.workflows.export import export_model

_MEASURED = """
import re, sys, time
from safetensors.torch import load_file
from headwise.workflows.import_model import import_model
began = time.perf_counter()
{work}
taken = time.perf_counter() - began
# Of this process alone: what getrusage tells begins with the memory of the process that started it.
print(taken, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""
WORK = {
    "read": "kept = {name: tensor.clone() for name, tensor in load_file(sys.argv[1] + '/model.safetensors').items()}",
    "import": "import_model(sys.argv[1], __import__('pathlib').Path(sys.argv[2]))",
    "nothing": "pass",
}


def publish(folder: Path, vocabulary: int) -> float:
    """Writes the model in the Hub's layout; returns the size of its weights in MB."""
    words = " ".join(f"w{number}" for number in range(vocabulary))
    tokenizers = TokenizerPair.one(Tokenizer.train([words], schema.Tokenizer(kind="word", size=vocabulary)))
    model = Transformer(source_vocab=tokenizers.source.size)
    print(f"{sum(weight.numel() for weight in model.parameters()) / 1e6:.1f} million weights")
    save_model(folder / "own", model, tokenizers, family="transformer")
    export_model(folder / "own", folder / "hub", to="huggingface")
    shutil.rmtree(folder / "own")
    return (folder / "hub" / "model.safetensors").stat().st_size / 2**20


def measure(name: str, folder: Path) -> tuple[float, float]:
    """Seconds and peak memory in MB of a process."""
    command = [sys.executable, "-c", _MEASURED.format(work=WORK[name]), str(folder / "hub"), str(folder / "ours")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    shutil.rmtree(folder / "ours", ignore_errors=True)
    seconds, peak = map(float, done.stdout.split()[-2:])
    return seconds, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=int, default=60_000, help="tokens; 60,000 make 75 million weights")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        size = publish(Path(made), arguments.vocabulary)
        rounds = [{name: measure(name, Path(made)) for name in WORK} for _ in range(arguments.rounds + 1)][1:]
    seconds = {name: [one[name][0] for one in rounds] for name in WORK}
    peaks = {name: [one[name][1] for one in rounds] for name in WORK}
    result = Result("importing", "Import of a published model", {"MB": round(size), "rounds": arguments.rounds})
    result.add("import", "s", seconds["import"], {"reading the file": seconds["read"]}, better="lower")
    beyond = {name: [peak - size for peak in values] for name, values in peaks.items()}
    result.add(
        "memory beyond the weights", "MB", beyond["import"], {"reading the file": beyond["read"]}, better="lower",
        note=f"libraries alone: {sorted(peaks['nothing'])[len(rounds) // 2]:.0f} MB",
    )  # fmt: skip
    for row in result.rows:
        print(
            f"{row.what}, {row.unit}: {row.ours:.2f}; {row.peers}; ratio {row.ratio}, spread {row.spread}; {row.note}"
        )
    if arguments.json:
        result.save(arguments.json)


if __name__ == "__main__":
    main()
