"""Whatever is sent to a server, it answers with a status below 500, and errors in JSON."""

from __future__ import annotations

import asyncio
import collections
import random
from pathlib import Path
from typing import Any

import pytest
from counts import REQUESTS, SCHEMA_EXAMPLES
from raw_client import Answer, RawClient
from requests_by_hand import MODELS, Draw
from running import Running, serving
from test_schema import ask_by_schema

ERRORS_ARE_JSON = ("application/json",)


def wrong(answer: Answer, asked: bytes) -> str:
    """Says what is wrong with an answer; 503 and 504 are for shutdowns and deadlines, and there are none here."""
    if answer.status >= 500:
        return f"status {answer.status}"
    if answer.status >= 400 and not asked.startswith(b"HEAD "):
        if answer.headers.get("content-type") not in ERRORS_ARE_JSON:
            return f"{answer.status} with {answer.headers.get('content-type')}"
        if list(answer.json) != ["error"]:
            return f"{answer.status} without the form of an error"
    return ""


async def bombard(port: int, schema: Any, count: int, clients: int, seed: int) -> tuple[dict[int, int], list[str]]:
    """Sends `count` requests over several connections; gives the statuses and what was wrong."""
    seen: collections.Counter[int] = collections.Counter()
    problems: list[str] = []

    async def client(number: int) -> None:
        draw, connection = Draw(schema, random.Random(seed * 1000 + number)), RawClient(port)
        for _ in range(count // clients):
            asked = draw.one()
            try:
                answer = await connection.ask(asked)
            except (ConnectionError, TimeoutError, ValueError) as error:
                problems.append(f"{error!r}: {asked[:600]!r}")
                connection.close()
                continue
            seen[answer.status] += 1
            if found := wrong(answer, asked):
                problems.append(f"{found}: {answer.body[:200]!r}: {asked[:600]!r}")
        connection.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return dict(seen), problems


def ask_by_hand(server: Running, count: int, seed: int) -> dict[int, int]:
    schema = server.ask("GET", "/openapi.json").json
    seen, problems = asyncio.run(bombard(server.port, schema, count, 8, seed))
    assert problems == [], f"{len(problems)} of {count}"
    assert server.ask("GET", "/health/ready").status == 200
    return seen


@pytest.fixture
def target(
    word_model: Path, language_model: Path, classifier_model: Path, picture_model: Path, filler_model: Path,
    embedder_model: Path, speech_model: Path,
) -> Any:  # fmt: skip
    paths = (word_model, language_model, classifier_model, picture_model, filler_model, embedder_model, speech_model)
    models = dict(zip(MODELS, paths, strict=True))
    named = [word for name, path in models.items() for word in ("--model", f"{name}={path}")]
    with serving(*named, "--quiet", "--timeout", 600) as running:
        yield running


def test_a_thousand_odd_requests_cause_no_server_error(target: Running) -> None:
    seen = ask_by_hand(target, 1000, seed=1)
    assert sum(seen.values()) == 1000
    assert {200, 400, 403, 404, 405, 415} <= seen.keys()
    for path in ("/embed", "/look"):  # those that are likely to have a body without mistakes
        assert target.metric("headwise_requests_total", route=path, status="200") > 0, path


@pytest.mark.slow
def test_a_hundred_thousand_requests_cause_no_server_error(target: Running, tmp_path: Path) -> None:
    by_schema = ask_by_schema(target, tmp_path, examples=SCHEMA_EXAMPLES, phases="coverage,fuzzing")
    before = target.memory()
    seen = ask_by_hand(target, REQUESTS - by_schema, seed=2)
    grown = (target.memory() - before) >> 20
    print(
        f"\n{by_schema} requests by schemathesis, {sum(seen.values())} by hand: {dict(sorted(seen.items()))}; ", end=""
    )
    print(f"memory grew by {grown} MB")
