"""Clients that use a server the way people do, for a long time: every kind of request, with pauses, some impatient."""

from __future__ import annotations

import asyncio
import collections
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from raw_client import RawClient, post, request

SENTENCES = (
    "A man in a blue shirt is standing on a ladder.", "Two dogs play in the snow.", "A girl reads a book in a park.",
    "Three people sit at a table and eat.", "A child jumps into the water.", "A woman sells fruit at a market.",
)  # fmt: skip


@dataclass
class Soaked:
    """What was seen: statuses by kind of request, answers that changed, and memory over time."""

    statuses: collections.Counter[str] = field(default_factory=collections.Counter)
    changed: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)  # bytes, at equal intervals

    def bad(self) -> dict[str, int]:
        return {name: count for name, count in self.statuses.items() if int(name.split()[-1]) >= 500}


def draw(choose: random.Random) -> tuple[str, bytes]:
    """(kind, request) of one of the requests that the page and other programs send."""
    sentence = choose.choice(SENTENCES)
    pair = {"source": "en", "target": "de"}
    kinds: dict[str, Callable[[], bytes]] = {
        "translate": lambda: post("/translate", {"q": sentence, **pair}),
        "several": lambda: post("/translate", {"q": choose.sample(SENTENCES, 3), **pair, "details": True}),
        "wide": lambda: post("/translate", {"q": sentence, **pair, "beam": 8, "alternatives": 4}),
        "detected": lambda: post("/translate", {"q": sentence, "source": "auto", "target": "de"}),
        "html": lambda: post("/translate", {"q": f"<p>{sentence} <b>Yes.</b></p>", **pair, "format": "html"}),
        "protected": lambda: post("/translate", {"q": f"{{name}}: {sentence}", **pair, "protect": True}),
        "glossary": lambda: post("/translate", {"q": sentence, **pair, "glossary": {"dogs": "Hündchen"}}),
        "detect": lambda: post("/detect", {"q": sentence}),
        "generate": lambda: post("/generate", {"prompt": "the ", "max_tokens": 20, "seed": 1}),
        "stream": lambda: post("/generate", {"prompt": "the ", "max_tokens": 20, "seed": 1, "stream": True}),
        "look": lambda: post("/look", {"text": sentence}),
        "wrong": lambda: post("/translate", {"q": 7, **pair}),
        "ready": lambda: request("GET", "/health/ready"),
        "metrics": lambda: request("GET", "/metrics"),
    }
    weights = [3 if name in ("translate", "several") else 1 for name in kinds]
    kind = choose.choices(list(kinds), weights)[0]
    return kind, kinds[kind]()


async def soak(port: int, clients: int, seconds: float, pause: float, memory: Callable[[], int]) -> Soaked:
    """Runs the clients; each waits `pause` seconds on average between two requests. Takes 60 samples of the memory."""
    seen, first, until = Soaked(), dict[bytes, Any](), time.monotonic() + seconds

    async def client(number: int) -> None:
        choose, connection = random.Random(number), RawClient(port)
        while time.monotonic() < until:
            kind, content = draw(choose)
            if choose.random() < 0.03:
                await connection.leave(content, choose.random() * 0.05)
            else:
                answer = await connection.ask(content)
                seen.statuses[f"{kind} {answer.status}"] += 1
                if kind not in ("ready", "metrics") and first.setdefault(content, answer.body) != answer.body:
                    seen.changed.append(kind)
            await asyncio.sleep(choose.random() * 2 * pause)
        connection.close()

    async def watch() -> None:
        while time.monotonic() < until:
            seen.memory.append(memory())
            await asyncio.sleep(seconds / 60)

    await asyncio.gather(watch(), *(client(number) for number in range(clients)))
    return seen
