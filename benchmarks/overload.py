"""Measures how fast a full queue refuses: the latency of a 429 while far more is asked than can be answered.

    python benchmarks/overload.py [--model multi30k-en-de] [--queue 16] [--overload 20] [--seconds 10] [--rounds 3]

There are `overload` times as many clients as the queue takes. Each sends one sentence after the other over a persistent
connection and waits a little after a refusal, as Retry-After asks. The clients share the cores with the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from pathlib import Path

from results import Result
from serving import serving

SENTENCE = "A man in a blue shirt is standing on a ladder cleaning a window."
PAUSE = 0.5  # seconds after a refusal


async def overload(port: int, languages: list[str], clients: int, seconds: float) -> dict[int, list[float]]:
    """Gives the latencies in seconds by status; the first fifth of the time is not counted."""
    found: dict[int, list[float]] = {}
    body = json.dumps({"q": SENTENCE, "source": languages[0], "target": languages[1]}).encode()
    head = (
        f"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    content = head.encode() + b"\r\n\r\n" + body
    begin, end = time.perf_counter() + seconds / 5, time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (asked := time.perf_counter()) < end:
            writer.write(content)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(answer.split("content-length: ")[1].split("\r\n")[0]))
            status = int(answer.split(" ")[1])
            if asked > begin:
                found.setdefault(status, []).append(time.perf_counter() - asked)
            if status == 429:
                await asyncio.sleep(PAUSE)
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="multi30k-en-de")
    parser.add_argument("--languages", nargs=2, default=["en", "de"])
    parser.add_argument("--queue", type=int, default=16)
    parser.add_argument("--overload", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    command = [sys.executable, "-m", "headwise", "serve", "--port", "0", "--quiet", "--model", chosen.model]
    rows: dict[str, list[float]] = {"50th": [], "99th": [], "answered": []}
    with serving([*command, "--queue", str(chosen.queue)]) as port:
        for _ in range(chosen.rounds):
            clients = chosen.queue * chosen.overload
            found = asyncio.run(overload(port, chosen.languages, clients, chosen.seconds))
            refused = statistics.quantiles(found[429], n=100)
            rows["50th"].append(refused[49] * 1000)
            rows["99th"].append(refused[98] * 1000)
            rows["answered"].append(statistics.median(found[200]) * 1000)
            print(
                {status: len(times) for status, times in found.items()},
                f"429 at the median: {refused[49] * 1000:.1f} ms",
            )
    settings = {"model": chosen.model, "queue": chosen.queue, "overload": chosen.overload, "pause": PAUSE}
    result = Result("overload", "Refusals under overload", settings=settings, threads=2)
    for name, what in (("50th", "a refusal (429), 50th percentile"), ("99th", "a refusal (429), 99th percentile"),
                       ("answered", "an answer meanwhile, 50th percentile")):  # fmt: skip
        result.add(f"{what}, {chosen.overload} × overload", "ms", ours=rows[name], better="lower")
    result.save(chosen.json)


if __name__ == "__main__":
    main()
