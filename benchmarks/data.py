"""Benchmarks the data pipeline, from text to batches: speed ratios, padding, and memory on a large corpus.

    python benchmarks/data.py --corpora DIR [--pairs 10000000] [--only store,batches,…] [--json FILE]

`--corpora` (or HEADWISE_DATA) is the folder that holds multi30k. `memory` generates its own pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from results import Result

from headwise.config import schema
from headwise.data.chunks import Chunks, Files
from headwise.data.cursor import Cursor, walk
from headwise.data.pairs import PairBatches
from headwise.data.prefetch import Prefetch
from headwise.data.store import Store
from headwise.data.writer import cached_store, write_files
from headwise.text.corpus import read_lines
from headwise.text.subword_regularisation import sampler
from headwise.text.tokenizer import Tokenizer

TRAINING_TOKENS = 12_000  # target tokens per second that training `tiny` may consume on two cores
BATCH_TOKENS = 4096


PARTS = ("store", "batches", "sampling", "memory")
RESULT = Result("data", "From text to batches", {"corpus": "Multi30k en-de", "tokens per batch": BATCH_TOKENS})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, default=os.environ.get("HEADWISE_DATA"))
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--only", default=",".join(PARTS), help="some of the parts, with commas between them")
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    parser.add_argument("--child", nargs=2, metavar=("PART", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        part, folder = arguments.child
        print(json.dumps({"write": write_large, "iterate": iterate_large}[part](Path(folder))))
        return
    parts = arguments.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as scratch:
        if set(parts) - {"memory"}:
            if arguments.corpora is None:
                parser.error("name the folder of the corpora: --corpora DIR")
            on_multi30k(Path(arguments.corpora) / "multi30k", Path(scratch), parts)
        if "memory" in parts:
            memory(Path(scratch), arguments.pairs)
    if arguments.json:
        RESULT.save(arguments.json)


def on_multi30k(folder: Path, scratch: Path, parts: list[str]) -> None:
    files = {side: folder / f"train.{code}.gz" for side, code in (("source", "en"), ("target", "de"))}
    texts = {side: [line.text for line in read_lines(file)] for side, file in files.items()}
    began = time.perf_counter()
    tokenizer = Tokenizer.train(texts["source"] + texts["target"], schema.Tokenizer())
    show("train bpe 8,000 on Multi30k en-de", f"{time.perf_counter() - began:.1f} s")
    chunks = Chunks(Files(source=[str(files["source"])], target=[str(files["target"])]), schema.Filters())
    store = write(scratch / "multi30k", chunks, tokenizer)
    if "store" in parts:
        storing(scratch, chunks, tokenizer, texts["source"] + texts["target"])
    if "batches" in parts:
        batching(store)
    if "sampling" in parts:
        sampling(store, tokenizer)


def write(cache: Path, chunks: Chunks, tokenizer: Tokenizer) -> Store:
    def write_into(directory: Path) -> None:
        with Prefetch(chunks, ahead=2) as stream:
            write_files(directory, chunks, {"source": tokenizer, "target": tokenizer}, stream=stream)

    return cached_store(cache, "store", write_into)


def storing(scratch: Path, chunks: Chunks, tokenizer: Tokenizer, texts: list[str]) -> None:
    """Compares writing a store from compressed files with the library's encoding of the same texts in memory."""
    rounds = [
        (
            seconds(lambda: tokenizer._inner.encode_batch(texts, add_special_tokens=False)),
            seconds(lambda number=number: write(scratch / f"again-{number}", chunks, tokenizer)),
        )
        for number in range(5)
    ]
    sides = [list(side) for side in zip(*rounds, strict=True)]
    peers = {"the tokenizers library, in memory, nothing stored": sides[0]}
    RESULT.add("tokenise and store", "s", sides[1], peers, better="lower", headline=True)
    library, ours = (float(np.median(side)) for side in sides)
    show("tokenise and store / library's encode_batch, 2 threads (at least 0.8)", f"{library / ours:.2f}")
    show("    seconds", f"{ours:.2f} and {library:.2f}")


def batching(store: Store) -> None:
    batches = PairBatches(store, BATCH_TOKENS, seed=1)
    tokens = positions = source_tokens = source_positions = 0
    began = time.perf_counter()
    for batch, _ in walk(batches, epochs=3):
        source, _, lengths = batch.inputs
        tokens, positions = tokens + batch.tokens, positions + batch.targets.numel()
        source_tokens, source_positions = source_tokens + int(lengths.sum()), source_positions + source.numel()
    rate = tokens / (time.perf_counter() - began)
    RESULT.add("batches", "target tokens/s", rate)
    RESULT.add("padding of the source", "%", 100 * (1 - source_tokens / source_positions), better="lower")
    RESULT.add("padding of the target", "%", 100 * (1 - tokens / positions), better="lower")
    show("batches, target tokens per second", f"{rate:,.0f} ({rate / TRAINING_TOKENS:.0f} times training; at least 20)")
    show(
        "padding on Multi30k en-de at 4,096 tokens, source and target (at most 5 %)",
        f"{1 - source_tokens / source_positions:.1%} and {1 - tokens / positions:.1%}",
    )
    show("a batch from a cursor in another epoch", f"{1000 * seconds(lambda: batches.make(Cursor(7, 50))):.0f} ms")


def sampling(store: Store, tokenizer: Tokenizer) -> None:
    for dropout in (0.1, 0.3):
        again = sampler(tokenizer, dropout, 1)
        batches = PairBatches(store, BATCH_TOKENS, seed=1, resample=(again, again))
        tokens = sum(batches.make(Cursor(0, index)).tokens for index in range(2))
        began = time.perf_counter()
        tokens = sum(batches.make(Cursor(0, index)).tokens for index in range(60))
        rate = tokens / (time.perf_counter() - began)
        RESULT.add(f"batches with BPE dropout {dropout}", "target tokens/s", rate)
        times = f"{rate / TRAINING_TOKENS:.0f} times training; at least 10"
        show(f"batches with BPE dropout {dropout} on both sides, target tokens per second", f"{rate:,.0f} ({times})")


def memory(scratch: Path, pairs: int) -> None:
    generate(scratch, pairs)
    for part, bound in (("write", 1000), ("iterate", 500)):
        command = [sys.executable, __file__, "--child", part, str(scratch)]
        result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        name = {"write": "storing", "iterate": "iterating over"}[part]
        RESULT.add(f"most memory, {name} {pairs:,} pairs", "MB", result["peak"], better="lower")
        figures = ", ".join(f"{key} {value}" for key, value in result.items() if key != "peak")
        show(f"{name} {pairs:,} pairs, peak memory (below {bound} MB)", f"{result['peak']} MB ({figures})")


def generate(scratch: Path, pairs: int) -> None:
    """Writes two aligned files with 4 to 9 words per line, from a vocabulary with a long tail."""
    chance = np.random.default_rng(1)
    syllables = ["ba", "der", "ni", "scho", "le", "tra", "vi", "kun", "mo", "rit", "sa", "we"]
    words = np.array(["".join(chance.choice(syllables, 1 + index % 4)) for index in range(20_000)], dtype=object)
    for side in ("source", "target"):
        with (scratch / f"large.{side}").open("w", encoding="utf-8") as file:
            for start in range(0, pairs, 50_000):
                count = min(50_000, pairs - start)
                chosen = words[np.minimum(chance.zipf(1.3, (count, 9)), len(words)) - 1]
                lengths = chance.integers(4, 10, count)
                file.writelines(" ".join(row[:length]) + "\n" for row, length in zip(chosen, lengths, strict=True))


def write_large(folder: Path) -> dict[str, object]:
    files = Files(source=[str(folder / "large.source")], target=[str(folder / "large.target")])
    chunks = Chunks(files, schema.Filters())
    some = [line.text for line, _ in zip(read_lines(files.source), range(50_000), strict=False)]
    tokenizer = Tokenizer.train(some, schema.Tokenizer.model_validate({"size": 2000}))
    began = time.perf_counter()
    store = write(folder / "large", chunks, tokenizer)
    taken = time.perf_counter() - began
    tokens = sum(store.manifest.tokens.values())
    return {
        "peak": peak(),
        "seconds": round(taken),
        "tokens per second": round(tokens / taken),
        "counts": str(chunks.counts),
    }


def iterate_large(folder: Path) -> dict[str, object]:
    imported = peak()
    store = Store(folder / "large" / "store")
    batches = PairBatches(store, BATCH_TOKENS, seed=1)
    planning = seconds(lambda: batches.count(0))
    tokens = 0
    began = time.perf_counter()
    with Prefetch(walk(batches)) as ready:
        for number, (batch, _) in enumerate(ready):
            tokens += batch.tokens
            if number == 5000:
                break
    rate = tokens / (time.perf_counter() - began)
    return {
        "peak": peak(),
        "of it imports": imported,
        "plan seconds": round(planning, 1),
        "tokens per second": round(rate),
    }


def peak() -> int:
    """Returns the peak memory of this process in MB (unlike ru_maxrss, VmHWM does not start at the parent's peak)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1000)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def show(name: str, figure: str) -> None:
    print(f"{name:<80} {figure}", flush=True)


if __name__ == "__main__":
    main()
