"""Compares the server with LibreTranslate's design on the same model, and with the bare engine.

    python benchmarks/serving.py [--model RUN/model] [--source test.en] [--clients 1 16 64] [--seconds 5] [--rounds 3]

Measures requests per second and the 50th and 99th percentile of the latency, for several numbers of clients that each
send one sentence after the other over a persistent connection. The peer is Flask behind waitress with one call of
CTranslate2 per request, as in LibreTranslate, on the same weights, tokenizers and beam. Servers take turns within a
round, so that other load on the machine affects both equally; ratios are computed within a round. All clients run in
this process, which shares the cores with the server, in the same way for both.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from environments import DEFAULT, PACKAGES, NotInstalledError, environment
from results import Better, Result

HERE = Path(__file__).parent
ADDRESS = re.compile(r"at http://127\.0\.0\.1:(\d+)")
THREADS = 4  # LibreTranslate's default
CORES = len(os.sched_getaffinity(0))
# CTranslate2's workers and threads per worker (0: its default): LibreTranslate's settings, and the best ones.
PEERS = {"LibreTranslate's way": (1, 0), "LibreTranslate's way, one worker per core": (CORES, 1)}


@contextmanager
def serving(command: list[str]) -> Iterator[int]:
    """Starts a server, yields its port, and stops it."""
    paths = os.pathsep.join([str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert process.stderr is not None
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if found := ADDRESS.search(line):
                yield int(found[1])
                return
        sys.exit(f"a server did not start:\n{''.join(said)[-3000:]}")
    finally:
        process.terminate()
        process.wait()


def post(path: str, body: bytes, kind: str = "application/json") -> bytes:
    """A whole request."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def load(port: int, requests: list[bytes], clients: int, seconds: float) -> dict[str, float]:
    """Runs clients without pauses for some time, each choosing among the requests; the first tenth is not counted."""
    times: list[float] = []
    begin = time.perf_counter() + seconds / 10
    end = begin + seconds

    async def client(number: int) -> None:
        choose = random.Random(number)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (asked := time.perf_counter()) < end:
            writer.write(choose.choice(requests))
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
            if " 200 " not in head.split("\r\n")[0] + " ":
                sys.exit(f"a server answered {head.splitlines()[0]}")
            if begin < (answered := time.perf_counter()) <= end:
                times.append(answered - asked)
        writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    ranked = sorted(times)
    if not ranked:
        sys.exit(f"no request was answered within {seconds:g} seconds; give more --seconds")
    return {
        "requests_per_second": round(len(times) / seconds, 1),
        "p50_ms": round(1000 * statistics.median(ranked), 2),
        "p99_ms": round(1000 * ranked[int(0.99 * (len(ranked) - 1))], 2),
    }


def bare(translator: Any, lines: list[str], seconds: float) -> float:
    """Measures the median milliseconds per sentence in this process, from text to text."""
    choose, times = random.Random(0), []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        line, began = choose.choice(lines), time.perf_counter()
        translator.translate([line])
        times.append(time.perf_counter() - began)
    return round(1000 * statistics.median(times), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="headwise-demo/run/model")
    parser.add_argument("--source", default="headwise-demo/corpus/test.en", help="sentences, one per line")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()

    from headwise.interop.ctranslate2.kept import kept_export
    from headwise.workflows.translate import open_translator

    opener = gzip.open if arguments.source.endswith(".gz") else open
    with opener(arguments.source, "rt", encoding="utf-8") as stream:
        lines = [line.strip() for line in stream if line.strip()][: arguments.sentences]
    translator = open_translator(arguments.model, scores="sentences")
    languages, beam = list(translator.bundle.languages), str(translator.options().beam)
    export = str(kept_export(translator.bundle, translator.tokenizers, "int8"))
    missing = ""
    own = ["-m", "headwise", "serve", "--model", arguments.model, "--port", "0", "--quiet"]
    servers = {"headwise": [sys.executable, *own]}
    try:
        python = str(environment(arguments.environments, "libretranslate"))
        script = str(HERE / "peers" / "libretranslate_serving.py")
        for name, (workers, threads) in PEERS.items():
            model = str(translator.bundle.path)
            servers[name] = [python, script, model, export, beam, str(THREADS), str(workers), str(threads)]
    except NotInstalledError as error:
        print(f"LibreTranslate's way is left out: {error}", file=sys.stderr)
        missing = str(error)
    asked = {"source": languages[0], "target": languages[1]}
    requests = [post("/translate", json.dumps({"q": line, **asked}).encode()) for line in lines]
    rounds: list[dict[str, Any]] = []
    for number in range(arguments.rounds):
        found: dict[str, Any] = {"bare_p50_ms": bare(translator, lines, arguments.seconds)}
        for name, command in servers.items():
            with serving(command) as port:
                found[name] = {
                    clients: asyncio.run(load(port, requests, clients, arguments.seconds))
                    for clients in arguments.clients
                }
        rounds.append(found)
        print(json.dumps({"round": number, **found}), flush=True)
    as_result(rounds, arguments, int(beam), missing).save(arguments.json)


def as_result(rounds: list[dict[str, Any]], arguments: argparse.Namespace, beam: int, missing: str) -> Result:
    """Collects one figure per round; ratios are taken within rounds."""
    settings = {
        "model": arguments.model, "beam": beam, "seconds": arguments.seconds, "rounds": arguments.rounds,
        "peer": f"Flask {version_of('flask')} behind waitress, {THREADS} threads",
    }  # fmt: skip
    result = Result("serving", "Serving", settings, threads=CORES)
    measures: tuple[tuple[str, str, str, Better], ...] = (
        ("requests_per_second", "requests", "requests/s", "higher"),
        ("p50_ms", "50th percentile", "ms", "lower"),
        ("p99_ms", "99th percentile", "ms", "lower"),
    )
    for count in arguments.clients:
        for key, what, unit, better in measures:
            ours = [found["headwise"][count][key] for found in rounds]
            peers = {name: [found[name][count][key] for found in rounds] for name in PEERS if name in rounds[0]}
            headline = count == 16 and key == "requests_per_second"
            what = f"{what}, {count} client{'s' if count > 1 else ''}"
            result.add(what, unit, ours=ours, peers=peers, better=better, headline=headline)
    if 1 in arguments.clients:
        ours = [found["headwise"][1]["p50_ms"] for found in rounds]
        alone = [found["bare_p50_ms"] for found in rounds]
        beyond = statistics.median(a - b for a, b in zip(ours, alone, strict=True))
        note = f"a request takes {beyond:.2f} ms longer than the engine alone"
        what = "50th percentile, 1 client, against the bare engine"
        result.add(what, "ms", ours=ours, peers={"the engine in one's own process": alone}, better="lower", note=note)
    if missing:
        result.leave_out("LibreTranslate's way", missing)
    return result


def version_of(package: str) -> str:
    pinned = next(name for name in PACKAGES["libretranslate"] if name.startswith(package))
    return pinned.partition("==")[2]


if __name__ == "__main__":
    main()
