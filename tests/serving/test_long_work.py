"""Long work neither outlives its client nor its deadline, and holds nobody up; what is too much is not begun."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from running import RIGGED, Running, serving

LONG = "red " * 8  # the rigged engine never ends its search
GLOSSARY = {"glossary": {"dog": "Vogel"}}
# By lane, a request that never ends, and one that is answered.
LANES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "fast": ("/translate", {"q": LONG}, {"q": "red dog", "beam": 3}),  # another beam: they cannot share a batch
    "torch": ("/translate", {"q": LONG + "dog", **GLOSSARY}, {"q": "red dog", "beam": 3, **GLOSSARY}),
    "look": ("/look", {"text": LONG}, {"text": "red dog"}),
    "fill": ("/fill", {"text": LONG + "[MASK]"}, {"text": "red [MASK]", "top": 3}),
}


@pytest.fixture(scope="module")
def endless(models: dict[str, Path]) -> Iterator[Running]:
    with serving(named(models), "endless", "", script=RIGGED) as running:
        for lane in LANES:
            assert ask(running, lane, 2) == 200  # torch is loaded
        yield running


def named(models: dict[str, Path]) -> str:
    return f"words={models['words']}:gaps={models['gaps']}"


def body(lane: str, which: int) -> dict[str, Any]:
    """`which` is 1 for the request that never ends and 2 for the other."""
    pair = {} if LANES[lane][0] != "/translate" else {"source": "en", "target": "de"}
    return {**LANES[lane][which], **pair}  # type: ignore[dict-item]


def ask(running: Running, lane: str, which: int) -> int:
    return running.ask("POST", LANES[lane][0], body(lane, which)).status


def wait_until(condition: Callable[[], Any]) -> None:
    while not condition():
        pass


def begin(running: Running, lane: str) -> HTTPConnection:
    """Asks for what never ends; to close the connection is to leave."""
    connection = HTTPConnection("127.0.0.1", running.port)
    before = running.metric("headwise_queue_requests")
    connection.request("POST", LANES[lane][0], json.dumps(body(lane, 1)), {"Content-Type": "application/json"})
    wait_until(lambda: running.metric("headwise_queue_requests") > before)
    return connection


@pytest.mark.parametrize("lane", LANES)
def test_work_stops_when_its_client_leaves(endless: Running, lane: str) -> None:
    begin(endless, lane).close()
    wait_until(lambda: not endless.metric("headwise_active_jobs"))
    assert endless.metric("headwise_queue_requests") == 0
    assert ask(endless, lane, 2) == 200


@pytest.mark.parametrize("lane", LANES)
def test_others_are_answered_while_long_work_goes_on(endless: Running, lane: str) -> None:
    clients = [begin(endless, lane) for _ in range(3)]
    assert [ask(endless, other, 2) for other in LANES] == [200] * len(LANES)
    assert endless.ask("GET", "/health/ready").json["status"] == "ready"
    assert endless.metric("headwise_queue_requests") == 3, "none of them has ended"
    for client in clients:
        client.close()
    wait_until(lambda: not endless.metric("headwise_active_jobs"))


def test_work_stops_at_its_deadline(models: dict[str, Path]) -> None:
    with serving(named(models), "endless", "", 1, 1.0, script=RIGGED) as running:
        for lane in LANES:
            wait_until(lambda lane=lane: ask(running, lane, 2) == 200)  # to load torch may take longer than it has
            assert ask(running, lane, 1) == 504
            wait_until(lambda: not running.metric("headwise_active_jobs"))
            wait_until(lambda lane=lane: ask(running, lane, 2) == 200)
        assert running.metric("headwise_rejections_total", reason="timeout") >= len(LANES)


def test_what_costs_too_much_is_refused_with_its_bound(server: Running) -> None:
    much = {"q": "a " * 5000, "source": "en", "target": "de", "beam": 10, "glossary": {"a": "eins"}}
    answer = server.ask("POST", "/translate", much)
    assert answer.status == 413
    assert "but a request may cost 60,000" in answer.json["error"]
    for text in ({"text": "a " * 150}, {"text": "a", "target": "b " * 150}):
        answer = server.ask("POST", "/look", text)
        assert answer.status == 413
        assert "a picture of attention may have 128" in answer.json["error"]
