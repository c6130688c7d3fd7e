"""Compares translation speed with peers in one run, with the same weights in every engine.

    python benchmarks/translation.py --model RUN/model --source test.en.gz [--peers huggingface opennmt] [--rounds 5]

1. The torch engine against Hugging Face `generate`, OpenNMT-py and JoeyNMT: greedy and beam 5, batch 1 and 64.
2. The fast engine, text in to text out, against CTranslate2 alone on ready-made tokens: the same search, with
   the best of its settings.
3. Cold start: from the command to the first translation, against a Hugging Face script.

Contestants take turns at each setting, in another order in each round (`--rounds`), so that other load on the machine
affects all equally; every round is kept. The fast engine and CTranslate2 alone, which are close to each other, have
many short turns per round. All return translations without scores.
Each peer has an environment of its own under --environments, created on first use: a pinned version of its package from
PyPI, with the torch of this process. All engines translate the same sentences; at batch 1 the torch engine and its
peers translate a fifth of them, and JoeyNMT, which has no cache, a fifth of that. CTranslate2's best number of workers,
threads and batch size (at most 64) are determined before the rounds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from environments import DEFAULT, NotInstalledError, environment
from results import Result

# The script that runs a peer, and its name in the table.
PEERS = {
    "huggingface": ("huggingface_translation.py", "Hugging Face generate"),
    "opennmt": ("opennmt_translation.py", "OpenNMT-py 3.5.1"),
    "joeynmt": ("joeynmt_translation.py", "JoeyNMT 2.3.0"),
}
SLOW = ("joeynmt",)  # peers that get fewer sentences
COLD = ("huggingface",)  # peers whose script can be timed from its start
SETTINGS = ((1, 64), (1, 1), (5, 64), (5, 1))  # (beam, batch)
TURNS = {1: 8, 5: 3}  # turns per round of the fast engine and of CTranslate2 alone, by beam; greedy ones are shorter
BLOCK = 20  # sentences per turn at batch 1
ALPHA = 0.6  # length penalty of all contestants, whatever the model's default
HERE = Path(__file__).parent

Candidate = TypeVar("Candidate")
Lines = list[str]
Rates = dict[str, list[float]]  # one figure per round


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


# ---- peers


def installed(folder: Path, wanted: Lines) -> tuple[Lines, dict[str, str]]:
    """Returns the peers that can be installed here, and the others with the reason."""
    left_out: dict[str, str] = {}
    for peer in wanted:
        try:
            environment(folder, peer)
        except NotInstalledError as error:
            left_out[PEERS[peer][1]] = f"could not be installed ({error})"
    return [peer for peer in wanted if PEERS[peer][1] not in left_out], left_out


class Peer:
    """A peer's process, which waits for its turn."""

    def __init__(self, arguments: argparse.Namespace, name: str, ids: list[list[int]]) -> None:
        self.name = name
        command = [environment(arguments.environments, name), HERE / "peers" / PEERS[name][0]]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ask({"model": arguments.model, "sentences": ids, "threads": arguments.threads})

    def turn(self, beam: int, batch: int, count: int) -> tuple[float, list[list[int]]]:
        """Returns sentences per second and the translations. A slow peer gets fewer sentences."""
        count = max(1, count // 5) if self.name in SLOW else count
        found = self._ask([beam, batch, count])
        return count / found["seconds"], found["outputs"]

    def _ask(self, request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = next((line for line in self._process.stdout if line.startswith("{")), None)
        if answer is None:
            sys.exit(f"{self.name} failed; its output is above")
        return json.loads(answer)

    def close(self) -> None:
        self._process.communicate()


# ---- 1. the torch engine


def torch_engines(arguments: argparse.Namespace, lines: Lines) -> dict[str, Any]:
    import torch

    from headwise.workflows.translate import open_translator

    torch.set_num_threads(arguments.threads)
    translator = open_translator(arguments.model, "torch", scores="none")
    ids = translator.tokenizers.source.encode_batch(lines)
    translator.translate(lines[:8], beam=2)

    def turn(beam: int, batch: int, count: int) -> tuple[float, list[list[int]]]:
        options = translator.options(beam=beam, batch_sentences=batch, length_penalty=ALPHA)
        seconds, found = timed(lambda: search(translator, ids[:count], options))
        return count / seconds, [list(hypotheses[0].tokens) for hypotheses in found]

    peers = [Peer(arguments, name, ids) for name in arguments.peers]
    turns = {"headwise torch": turn, **{peer.name: peer.turn for peer in peers}}
    rates: dict[str, Rates] = {}
    same: dict[str, float] = {}
    for number in range(arguments.rounds):
        for beam, batch in SETTINGS:
            setting, found = f"beam {beam} batch {batch}", {}
            for name in in_turn(list(turns), number):
                rate, found[name] = turns[name](beam, batch, share(lines, batch))
                note(rates, setting, name, rate)
            own = found.pop("headwise torch")
            for name, outputs in found.items():
                equal = sum(a == b for a, b in zip(own, outputs, strict=False))
                same[f"{setting} {name}"] = equal / len(outputs)
    for peer in peers:
        peer.close()
    return {"sentences_per_second": rates, "same_output": same}


def in_turn(contestants: list[str], number: int) -> list[str]:
    """Returns their order in this round, which is reversed every other round."""
    return contestants[::-1] if number % 2 else contestants


def search(translator: Any, ids: list[list[int]], options: Any) -> Any:
    if options.batch_sentences > 1:
        return translator.engine.search(ids, options)
    return [translator.engine.search([one], options)[0] for one in ids]


def note(rates: dict[str, Rates], setting: str, engine: str, rate: float) -> None:
    rates.setdefault(setting, {}).setdefault(engine, []).append(rate)


# ---- 2. the fast engine


def fast_engines(arguments: argparse.Namespace, lines: Lines) -> dict[str, Any]:
    import ctranslate2

    from headwise.interop.ctranslate2.kept import kept_export
    from headwise.text.tokenizer import TokenizerPair
    from headwise.workflows.translate import open_translator

    rates: dict[str, Rates] = {}
    tokenizers = TokenizerPair.load(arguments.model)
    pieces = [[tokenizers.source.vocabulary[i] for i in s] + ["</s>"] for s in tokenizers.source.encode_batch(lines)]
    for precision in ("float32", "int8"):
        translator = open_translator(arguments.model, "ctranslate2", precision=precision, scores="none")
        directory = str(kept_export(translator.bundle, translator.tokenizers, precision))
        # Two copies of the same weights may differ by a tenth in speed, depending on where they are in memory, so
        # CTranslate2 alone uses our engine's copy if that has the same number of workers and threads.
        workers = translator.engine._workers
        raw = {(workers.cores, 1): workers.engine}
        for workers, threads in {(arguments.threads, 1), (1, arguments.threads)}.difference(raw):
            raw[workers, threads] = ctranslate2.Translator(directory, inter_threads=workers, intra_threads=threads)
        best = {setting: best_settings(raw, pieces, *setting) for setting in SETTINGS}
        print(f"CTranslate2 {precision}, best (workers × threads, batch) by (beam, batch):", best)
        for number in range(arguments.rounds):
            for beam, batch in SETTINGS:
                shape, size = best[beam, batch]
                seconds = {"ctranslate2": 0.0, "headwise": 0.0}
                turns = share_out(len(lines), beam, batch)
                for turn, part in enumerate(turns):
                    work = {
                        "ctranslate2": lambda e=raw[shape], p=pieces[part], b=beam, n=size: alone(e, p, b, n),
                        "headwise": lambda t=translator, p=lines[part], b=beam, n=batch: through_text(t, p, b, n),
                    }
                    for name in in_turn(list(work), number + turn):
                        seconds[name] += timed(work[name])[0]
                count = sum(len(lines[part]) for part in turns)
                for name, taken in seconds.items():
                    note(rates, f"beam {beam} batch {batch}", f"{name} {precision}", count / taken)
    return {"sentences_per_second": rates}


def share_out(count: int, beam: int, batch: int) -> list[slice]:
    """Returns the turns of a round: all sentences several times, or a few at a time."""
    if batch > 1:
        return [slice(count)] * TURNS[beam]
    return [slice(start, start + BLOCK) for start in range(0, count, BLOCK)]


def best_settings(
    raw: dict[tuple[int, int], Any], pieces: list[list[str]], beam: int, batch: int
) -> tuple[tuple[int, int], int]:
    """Finds the fastest workers × threads, then with these the fastest batch size of at most `batch`."""
    part = pieces[: max(1, len(pieces) // (2 if batch > 1 else 10))]
    shape = fastest(raw, lambda shape: alone(raw[shape], part, beam, batch))
    sizes = sorted({max(1, batch // share) for share in (1, 2, 4, 6)})  # 64, 32, 16, 10: similar to our engine's
    return shape, fastest(sizes, lambda size: alone(raw[shape], part, beam, size)) if len(sizes) > 1 else batch


def fastest(candidates: Iterable[Candidate], work: Callable[[Candidate], None]) -> Candidate:
    """Chooses by the median of three turns; drops candidates that take twice as long as another in the first turn."""
    first = {one: timed(lambda one=one: work(one))[0] for one in candidates}
    known = [one for one, taken in first.items() if taken < 2 * min(first.values())]
    turns = [first, *({one: timed(lambda one=one: work(one))[0] for one in known} for _ in range(2))]
    return min(known, key=lambda one: statistics.median(turn[one] for turn in turns))


def through_text(translator: Any, lines: Lines, beam: int, batch: int) -> None:
    """Translates like `headwise translate`, without starting a process."""
    from headwise.workflows.translate import CHUNK, TranslateOptions, translate_lines

    if batch > 1:
        chunks = [lines[i : i + CHUNK] for i in range(0, len(lines), CHUNK)]
        for _ in translate_lines(translator, chunks, TranslateOptions(beam=beam, length_penalty=ALPHA)):
            pass
    else:
        for line in lines:
            translator.translate([line], beam=beam, length_penalty=ALPHA)


def alone(engine: Any, pieces: list[list[str]], beam: int, batch: int) -> None:
    """Runs CTranslate2 on tokens, with the same limit on the length of outputs."""
    groups = [pieces] if batch > 1 else [[one] for one in pieces]
    for group in groups:
        limit = max(map(len, group)) + 49
        results = engine.translate_batch(
            group,
            beam_size=beam,
            length_penalty=ALPHA,
            max_batch_size=batch,
            max_decoding_length=limit,
        )
        for result in results:
            result.hypotheses  # noqa: B018 - the tokens are created when they are read


# ---- 3. cold start


def cold_start(arguments: argparse.Namespace, lines: Lines) -> Rates:
    ours = [str(Path(sys.executable).parent / "headwise"), "translate", "--model", arguments.model, lines[0]]
    commands: dict[str, list[Any]] = {"headwise": ours}
    for peer in set(COLD).intersection(arguments.peers):
        script = HERE / "peers" / PEERS[peer][0]
        commands[peer] = [environment(arguments.environments, peer), script, "--cold", arguments.model, lines[0]]
    seconds: Rates = {name: [] for name in commands}
    for number in range(arguments.rounds + 1):
        for name, command in commands.items():
            taken, _ = timed(lambda c=command: subprocess.run(c, check=True, capture_output=True))
            if number:  # the first run warms the disk cache
                seconds[name].append(taken)
    return seconds


# ---- the result


def as_result(figures: dict[str, Any], arguments: argparse.Namespace) -> Result:
    settings = {"sentences": figures["sentences"], "model": arguments.title or Path(arguments.model).name}
    result = Result("translation", "Translation", settings, arguments.threads)
    for setting, found in figures.get("torch", {}).get("sentences_per_second", {}).items():
        peers = {PEERS[name][1]: rates for name, rates in found.items() if name in PEERS}
        what = f"torch engine, {setting}"
        result.add(what, "sentences/s", found["headwise torch"], peers, headline=setting.startswith("beam 5"))
    for setting, found in figures.get("fast", {}).get("sentences_per_second", {}).items():
        for precision in ("float32", "int8"):
            peers = {f"CTranslate2 alone, {precision}": found[f"ctranslate2 {precision}"]}
            what = f"fast engine {precision}, {setting}"
            headline = precision == "int8" and setting.startswith("beam 5")  # the defaults, large and small batches
            result.add(what, "sentences/s", found[f"headwise {precision}"], peers, headline=headline)
    cold = figures.get("cold")
    if cold:
        peers = {PEERS[name][1]: seconds for name, seconds in cold.items() if name in PEERS}
        result.add("from the command to a translation", "s", cold["headwise"], peers, better="lower")
    for peer, reason in arguments.left_out.items():
        result.leave_out(peer, reason)
    return result


def show(title: str, rates: dict[str, Rates]) -> None:
    names = sorted({name for found in rates.values() for name in found})
    print(f"\n{title}: sentences per second\n{'':<18}" + "".join(f"{name:>22}" for name in names))
    for setting, found in rates.items():
        print(f"{setting:<18}" + "".join(f"{max(found.get(name, [float('nan')])):22.1f}" for name in names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", required=True, help="text to translate, one sentence per line")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--parts", nargs="*", default=["torch", "fast", "cold"], choices=["torch", "fast", "cold"])
    parser.add_argument("--title", default="", help="name of the model in the table")
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    arguments.peers, arguments.left_out = installed(arguments.environments, arguments.peers)
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    lines = read(arguments.source, arguments.sentences)
    figures: dict[str, Any] = {"sentences": len(lines), "threads": arguments.threads}
    if "torch" in arguments.parts:
        figures["torch"] = torch_engines(arguments, lines)
        show("torch", figures["torch"]["sentences_per_second"])
        print("same output:", figures["torch"]["same_output"])
    if "fast" in arguments.parts:
        figures["fast"] = fast_engines(arguments, lines)
        show("fast engine", figures["fast"]["sentences_per_second"])
    if "cold" in arguments.parts:
        figures["cold"] = cold_start(arguments, lines)
        print("\ncold start, seconds:", {name: round(min(value), 2) for name, value in figures["cold"].items()})
    for peer, reason in arguments.left_out.items():
        print(f"{peer}: left out: {reason}")
    if arguments.json:
        as_result(figures, arguments).save(arguments.json)


if __name__ == "__main__":
    main()
