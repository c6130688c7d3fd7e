"""Translation speed against peers, in one run, with the same weights in every engine.

    python benchmarks/translation.py --model RUN/model --source test.en.gz [--peers huggingface opennmt] [--rounds 2]

1. The torch engine against Hugging Face `generate` and OpenNMT-py: greedy and beam 5, batch 1 and 64.
2. The fast engine, text in to text out, against CTranslate2 alone on ready-made tokens with the best of its settings.
3. Cold start: from the command to the first translation, against a Hugging Face script.

Engines take turns (`--rounds`), and the best round of each counts, so that another load on the machine hits all alike.
A peer gets an environment of its own under --environments, made on first use: the package by name from PyPI, pinned,
with the torch that runs here. All engines translate the same sentences; at batch 1 fewer, since it is slow.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What is installed, and the script that speaks for it. OpenNMT-py asks for an older torch, so its needs are named here.
PEERS = {
    "huggingface": (["transformers==5.22.2"], "huggingface_translation.py"),
    "opennmt": (
        ["--no-deps", "OpenNMT-py==3.5.1", "configargparse", "pyonmttok==1.38.1", "six", "rapidfuzz", "pyahocorasick"],
        "opennmt_translation.py",
    ),
}
COLD = ("huggingface",)  # peers whose script can be timed from its start
SETTINGS = ((1, 64), (1, 1), (5, 64), (5, 1))  # (beam, batch)
HERE = Path(__file__).parent

Lines = list[str]
Rates = dict[str, float]


def read(path: str, count: int) -> Lines:
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as stream:
        return [line.rstrip("\n") for line in stream][:count]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def share(lines: Lines, batch: int) -> int:
    return len(lines) if batch > 1 else max(1, len(lines) // 5)


# ---- environments of peers


def environment(folder: Path, peer: str) -> Path:
    """The Python of a peer's environment. Torch and its like come from the environment of this process."""
    python = folder / peer / "bin" / "python"
    if not python.exists():
        venv.create(folder / peer, with_pip=True)
        site = next((folder / peer / "lib").glob("python*/site-packages"))
        (site / "torch_of_the_benchmark.pth").write_text(sysconfig.get_path("purelib") + "\n")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS[peer][0]], check=True)
    return python


def peer_rounds(folder: Path, peer: str, request: dict[str, Any]) -> list[dict[str, Any]]:
    command = [environment(folder, peer), HERE / "peers" / PEERS[peer][1]]
    run = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{peer} failed:\n{run.stderr[-3000:]}")
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


# ---- 1. the torch engine


def torch_engines(arguments: argparse.Namespace, lines: Lines) -> dict[str, Any]:
    import torch

    from headwise.workflows.translate import open_translator

    torch.set_num_threads(arguments.threads)
    translator = open_translator(arguments.model, "torch")
    ids = translator.tokenizers.source.encode_batch(lines)
    settings = [(beam, batch, share(lines, batch)) for beam, batch in SETTINGS]
    request = {"model": arguments.model, "sentences": ids, "settings": settings, "threads": arguments.threads}
    rates: dict[str, Rates] = {}
    same: dict[str, float] = {}
    translator.translate(lines[:8], beam=2)
    for _ in range(arguments.rounds):
        ours = []
        for beam, batch, count in settings:
            options = translator.options(beam=beam, batch_sentences=batch)
            seconds, found = timed(lambda o=options, n=count: search(translator, ids[:n], o))
            ours.append([list(hypotheses[0].tokens) for hypotheses in found])
            note(rates, f"beam {beam} batch {batch}", "headwise torch", count / seconds)
        for peer in arguments.peers:
            for (beam, batch, count), result, own in zip(
                settings, peer_rounds(arguments.environments, peer, request), ours, strict=True
            ):
                name = f"beam {beam} batch {batch}"
                note(rates, name, peer, count / result["seconds"])
                equal = sum(a == b for a, b in zip(own, result["outputs"], strict=True)) / count
                same[f"{name} {peer}"] = equal
    return {"sentences_a_second": rates, "same_output": same}


def search(translator: Any, ids: list[list[int]], options: Any) -> Any:
    if options.batch_sentences > 1:
        return translator.engine.search(ids, options)
    return [translator.engine.search([one], options)[0] for one in ids]


def note(rates: dict[str, Rates], setting: str, engine: str, rate: float) -> None:
    best = rates.setdefault(setting, {})
    best[engine] = max(best.get(engine, 0.0), rate)


# ---- 2. the fast engine


def fast_engines(arguments: argparse.Namespace, lines: Lines) -> dict[str, Any]:
    import ctranslate2

    from headwise.text.tokenizer import TokenizerPair
    from headwise.workflows.translate import open_translator

    rates: dict[str, Rates] = {}
    tokenizers = TokenizerPair.load(arguments.model)
    pieces = [[tokenizers.source.vocabulary[i] for i in s] + ["</s>"] for s in tokenizers.source.encode_batch(lines)]
    for precision in ("float32", "int8"):
        translator = open_translator(arguments.model, "ctranslate2", precision=precision, token_scores=False)
        directory = str(Path(arguments.model) / "ctranslate2" / precision)
        shapes = {(arguments.threads, 1), (1, arguments.threads), (1, 1)}
        raw = {
            shape: ctranslate2.Translator(directory, inter_threads=shape[0], intra_threads=shape[1]) for shape in shapes
        }
        for _ in range(arguments.rounds):
            for beam, batch in SETTINGS:
                count = share(lines, batch)
                setting = f"beam {beam} batch {batch}"
                for engine in raw.values():
                    seconds, _ = timed(lambda e=engine, b=beam, n=batch, c=count: alone(e, pieces[:c], b, n))
                    note(rates, setting, f"ctranslate2 {precision}", count / seconds)
                seconds, _ = timed(lambda t=translator, b=beam, n=batch, c=count: through_text(t, lines[:c], b, n))
                note(rates, setting, f"headwise {precision}", count / seconds)
    return {"sentences_a_second": rates}


def through_text(translator: Any, lines: Lines, beam: int, batch: int) -> None:
    """What `headwise translate` does, without starting a process."""
    from headwise.workflows.translate import CHUNK, Wanted, translate_lines

    if batch > 1:
        chunks = [lines[i : i + CHUNK] for i in range(0, len(lines), CHUNK)]
        for _ in translate_lines(translator, chunks, Wanted(beam=beam)):
            pass
    else:
        for line in lines:
            translator.translate([line], beam=beam)


def alone(engine: Any, pieces: list[list[str]], beam: int, batch: int) -> None:
    """CTranslate2 on tokens, with the bound on lengths that we have."""
    groups = [pieces] if batch > 1 else [[one] for one in pieces]
    for group in groups:
        limit = max(map(len, group)) + 49
        engine.translate_batch(
            group, beam_size=beam, length_penalty=0.6, max_batch_size=batch, max_decoding_length=limit
        )


# ---- 3. cold start


def cold_start(arguments: argparse.Namespace, lines: Lines) -> dict[str, float]:
    ours = [str(Path(sys.executable).parent / "headwise"), "translate", "--model", arguments.model, lines[0]]
    commands: dict[str, list[Any]] = {"headwise": ours}
    for peer in set(COLD).intersection(arguments.peers):
        script = HERE / "peers" / PEERS[peer][1]
        commands[peer] = [environment(arguments.environments, peer), script, "--cold", arguments.model, lines[0]]
    seconds: dict[str, float] = {}
    for _ in range(arguments.rounds + 1):
        for name, command in commands.items():
            taken, _ = timed(lambda c=command: subprocess.run(c, check=True, capture_output=True))
            seconds[name] = min(taken, seconds.get(name, taken))
    return seconds


def show(title: str, rates: dict[str, Rates]) -> None:
    names = sorted({name for found in rates.values() for name in found})
    print(f"\n{title}: sentences a second\n{'':<18}" + "".join(f"{name:>22}" for name in names))
    for setting, found in rates.items():
        print(f"{setting:<18}" + "".join(f"{found.get(name, float('nan')):22.1f}" for name in names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", required=True, help="text to translate, a sentence a line")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--peers", nargs="*", default=[], choices=list(PEERS))
    parser.add_argument("--environments", type=Path, default=Path.home() / ".cache" / "headwise" / "benchmarks")
    parser.add_argument("--parts", nargs="*", default=["torch", "fast", "cold"], choices=["torch", "fast", "cold"])
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    lines = read(arguments.source, arguments.sentences)
    figures: dict[str, Any] = {"sentences": len(lines), "threads": arguments.threads}
    if "torch" in arguments.parts:
        figures["torch"] = torch_engines(arguments, lines)
        show("torch", figures["torch"]["sentences_a_second"])
        print("same output:", figures["torch"]["same_output"])
    if "fast" in arguments.parts:
        figures["fast"] = fast_engines(arguments, lines)
        show("fast engine", figures["fast"]["sentences_a_second"])
    if "cold" in arguments.parts:
        figures["cold"] = cold_start(arguments, lines)
        print("\ncold start, seconds:", {name: round(value, 2) for name, value in figures["cold"].items()})
    if arguments.output:
        arguments.output.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
